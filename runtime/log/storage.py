"""The one connection that writes the log: transactions, checkpoints, and opening it again after an error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import apsw

from runtime.abi.errors import StorageFailed
from runtime.abi.telemetry import TelemetryEvent
from runtime.durable.database import open_writer
from runtime.durable.locks import FileLock
from runtime.log import catalog
from runtime.log.catalog import Floor
from runtime.log.marks import insert_mark, live_epochs, retire_others
from runtime.log.narration import Narration
from runtime.log.pending import Batch
from runtime.log.readers import Readers
from runtime.log.settings import Mark

ROWS_A_STATEMENT = 512
CHECKPOINT_PAGES = 1000
"""After so many pages (4 MB) the write-ahead log is copied into the database when nothing waits."""
CHECKPOINT_PAGES_AT_MOST = 4000
"""After so many, even when something waits."""
TRUNCATE_PAGES = 8000
"""A reader kept the write-ahead log from being used again and it grew: give the room back."""
REOPEN_WAIT_S = 5.0
SWEEP_ROWS = 512
"""So many rows that lie in a segment are deleted at once: some milliseconds."""


class Storage:
    """Owned by the writer's thread. Any ``apsw.Error`` or ``OSError`` from it leaves the outcome unknown: reopen."""

    def __init__(
        self, path: Path, *, narration: Narration, readers: Readers, sync_delay_s: float, vfs: str | None
    ) -> None:
        self._path = path
        self._narration = narration
        self._readers = readers
        self._sync_delay_s = sync_delay_s
        self._vfs = vfs
        self._shared = FileLock(path.with_name("log.lock"))
        self._live: dict[tuple[str, str], str] = {}
        self._connection: apsw.Connection | None = None
        self._synced = False  # a commit went well since the opening
        self._wal_pages = 0
        self.kept_pages = 0  # of the write-ahead log, which a reader keeps from being used again
        self._checked: int | None = None
        self._boot = 0
        self._inode = 0
        self._floor = Floor()
        self._sealed_upto = 0

    def adopt(self, connection: apsw.Connection, *, boot: int) -> None:
        """Go on with a connection that recovery opened and committed on."""
        self._connection = connection
        self._synced = True
        self._boot = boot
        self._inode = self._path.stat().st_ino
        self._look()

    def _look(self) -> None:
        """Learn again what the writer remembers of the tables: after an error only the disk knows."""
        connection = self._open_connection()
        self._live = live_epochs(connection)
        self._narration.opened(connection)
        self._floor = catalog.read_floor(connection)
        self._sealed_upto = catalog.sealed_upto(connection)

    @property
    def unswept(self) -> int:
        """Rows that lie in a segment and are still live."""
        return max(self._sealed_upto - self._floor.seq, 0)

    def sweep(self) -> None:
        """Delete some of them: a transaction of its own, short enough not to hold up a commit."""
        connection = self._open_connection()
        upto = min(self._floor.seq + SWEEP_ROWS, self._sealed_upto)
        chain: bytes | None = connection.execute("SELECT chain FROM entry WHERE seq = ?", (upto,)).get
        if chain is None:  # the rows went before their floor was noted, which one transaction excludes
            raise StorageFailed(f"entry {upto} was sealed and isn't live any more", seq=upto)
        floor = Floor(upto, chain)

        def delete(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM entry WHERE seq <= ?", (upto,))
            catalog.put_floor(connection, floor)

        self.act(delete)
        self._floor = floor

    def act(self, change: Callable[[apsw.Connection], None]) -> None:
        """A transaction of whatever ``change`` does; when it returns, all of it is on the disk."""
        connection = self._open_connection()
        connection.execute("BEGIN IMMEDIATE")
        change(connection)
        self._delay_sync()
        connection.execute("COMMIT")
        self._check_place()
        self._synced = True
        self._sealed_upto = catalog.sealed_upto(connection)

    def write(self, batch: Batch, events: list[TelemetryEvent]) -> None:
        """One transaction; when it returns, all of it is on the disk."""
        connection = self._open_connection()
        rows = len(batch)
        if rows <= ROWS_A_STATEMENT and not batch.marks and not events and self._checked is None:
            self._delay_sync()
            self._insert(connection, batch)  # alone, a statement is its own transaction: one step, one hand-over
        else:
            connection.execute("BEGIN IMMEDIATE")
            self._insert(connection, batch)
            self._write_marks(connection, batch.marks)
            if events:
                self._narration.write(connection, events)
            if self._checked is not None:
                connection.execute("UPDATE meta SET checked = ?", (self._checked,))
            self._delay_sync()
            connection.execute("COMMIT")
            self._checked = None
        self._check_place()
        self._synced = True

    def checkpoint(self, *, last_seq: int, idle: bool, now: bool = False) -> None:
        """Copy the write-ahead log into the database when it is time; never before a commit proved the opening."""
        self._wal_pages += self._open_connection().status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, True)[0] + 1
        enough = self._wal_pages >= (CHECKPOINT_PAGES if idle else CHECKPOINT_PAGES_AT_MOST)
        if not self._synced or not (enough or now):
            return
        connection = self._open_connection()
        self._delay_sync()
        pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if copied < pages:  # a reader needs the rest; look again after as many pages more
            self._wal_pages = min(pages, CHECKPOINT_PAGES // 2)
            self.kept_pages = pages
            return
        self._wal_pages = self.kept_pages = 0
        self._checked = last_seq
        if pages > TRUNCATE_PAGES:
            self._truncate(connection)

    def finish(self, *, ended_ms: int) -> None:
        """Mark this boot clean and leave everything in the main file."""
        connection = self._open_connection()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE boot SET clean = 1, ended_ms = ? WHERE number = ?", (ended_ms, self._boot))
        connection.execute("UPDATE meta SET checked = ifnull((SELECT max(seq) FROM entry), checked)")
        self._delay_sync()
        connection.execute("COMMIT")
        self._delay_sync()
        self._truncate(connection)

    def suspect(self, seq: int) -> None:
        """Note that a reader met damage, so that the next opening checks everything."""
        self._open_connection().execute("UPDATE meta SET suspect = ?", (seq,))

    def close(self) -> None:
        """Let go of the connection, whatever state it is in; nothing is written by it."""
        connection, self._connection = self._connection, None
        self._synced = False
        self._checked = None
        if connection is not None:
            connection.close(True)

    def reopen(self) -> tuple[int, bytes]:
        """With no connection on the file: evict, open, and return the last ``seq`` and chain really there.

        Raises ``StorageFailed`` when a reader doesn't let go.
        """
        self.close()
        if not self._readers.close(wait_s=REOPEN_WAIT_S):
            raise StorageFailed("a reader holds the log", path=str(self._path))
        if not self._shared.acquire(wait_s=REOPEN_WAIT_S):
            raise StorageFailed("a reader in another process holds the log", path=str(self._path))
        try:
            self._connection = open_writer(self._path, vfs=self._vfs, create=False)
            self._wal_pages = CHECKPOINT_PAGES  # unknown: look soon
            self._look()
            row = self._connection.execute("SELECT seq, chain FROM entry ORDER BY seq DESC LIMIT 1").get
        finally:
            self._shared.release()
        self._readers.open()
        return row or (self._floor.seq, self._floor.chain)

    def prove(self, batch: Batch) -> None:
        """The first transaction after ``reopen``: it syncs, so what was read there is on the disk when it returns."""
        connection = self._open_connection()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE boot SET reopens = reopens + 1 WHERE number = ?", (self._boot,))
        self._insert(connection, batch)
        self._write_marks(connection, batch.marks)
        self._delay_sync()
        connection.execute("COMMIT")
        self._check_place()
        self._synced = True

    def _insert(self, connection: apsw.Connection, batch: Batch) -> None:
        columns = batch.columns
        for start in range(0, len(columns), 4 * ROWS_A_STATEMENT):
            part = columns[start : start + 4 * ROWS_A_STATEMENT] if len(columns) > 4 * ROWS_A_STATEMENT else columns
            statement, size = insertion(len(part) // 4)
            connection.execute(statement, [*part, *(None,) * (4 * size - len(part))])

    def _write_marks(self, connection: apsw.Connection, marks: list[tuple[Mark, int]]) -> None:
        newest = {(m.channel, m.source_id, m.epoch): (m, seq) for m, seq in marks}
        for (channel, source_id, epoch), (mark, seq) in newest.items():
            insert_mark(connection, mark, seq=seq)
            if not mark.retired and self._live.get((channel, source_id)) != epoch:
                retire_others(connection, mark)
                self._live[channel, source_id] = epoch

    def _truncate(self, connection: apsw.Connection) -> None:
        """Give the write-ahead log's room back; when a reader is in the way, another time."""
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return

    def _check_place(self) -> None:
        """A file whose folder was removed still takes every write, and nobody will ever find it."""
        try:
            found = os.stat(self._path).st_ino
        except FileNotFoundError:
            found = 0
        if found != self._inode:
            raise StorageFailed(f"{self._path} isn't there any more", path=str(self._path))

    def _delay_sync(self) -> None:
        if self._sync_delay_s:
            time.sleep(self._sync_delay_s)

    def _open_connection(self) -> apsw.Connection:
        if self._connection is None:
            raise StorageFailed("the log isn't open", path=str(self._path))
        return self._connection


@lru_cache(maxsize=16)
def _insertion(size: int) -> str:
    values = ", ".join(["(?, ?, ?, ?)"] * size)
    return (
        "INSERT OR ROLLBACK INTO entry(seq, type, body, chain)"
        f" SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL"
    )


def insertion(rows: int) -> tuple[str, int]:
    """A statement for at least so many rows, the unused filled with NULL: a few statements serve every size.

    One statement for many rows is one step of SQLite, and one hand-over of the interpreter's lock.
    """
    size = 1 << max(rows - 1, 0).bit_length()
    return _insertion(size), size
