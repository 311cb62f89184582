"""The media store on disk: bytes are committed on a connection of their own before the row that names them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from runtime.abi.clock import wall_ms
from runtime.abi.errors import StorageFailed
from runtime.durable.database import copy_back, open_reader, open_writer, shm_path, wal_path
from runtime.durable.files import rename_durable
from runtime.durable.space import free_bytes
from runtime.media.ring import MAX_AGE_S, ref_of

FILE_NAME = "media.db"
MAX_STAGED_BYTES = 64 * 1024 * 1024
"""When the disk doesn't take them, the oldest staged bytes are let go: media give way first."""
RECENT_BYTES = 16 * 1024 * 1024
"""Bytes just written stay in memory, where the brain is about to ask for them."""
CHECKPOINT_PAGES = 4000
MARGIN_BYTES = 64 * 1024 * 1024
"""The last free room of the disk isn't for media: below it the ring turns in what it has."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS blob(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, ms INTEGER NOT NULL,"
    " size INTEGER NOT NULL, data BLOB NOT NULL) STRICT"
)
_UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError)


class DiskRing:
    """A ring in ``media.db``. Losing it loses no entry, so a file that can't be read is set aside and begun anew."""

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        max_age_s: float = MAX_AGE_S,
        vfs: str | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = folder / FILE_NAME
        self._max_bytes = max_bytes
        self._max_age_ms = int(max_age_s * 1000)
        self._vfs = vfs
        self._now = now
        self._lock = threading.Lock()  # the two below, shared by the loop, the writer and readers
        self._staged: dict[str, bytes] = {}
        self._recent: dict[str, bytes] = {}
        self._staged_bytes = 0
        self._recent_bytes = 0
        self._disk_bytes = 0
        self._write_lock = threading.Lock()  # the connection
        self._connection: apsw.Connection | None = None
        self._reader: apsw.Connection | None = None
        self._read_lock = threading.Lock()
        self._clock_ms = wall_ms() - int(now() * 1000)
        self._retry_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._wal_pages = 0
        self.failures = 0
        self.set_aside: str | None = None
        self._open()

    @property
    def size_bytes(self) -> int:
        """The bytes kept, on disk and staged."""
        return self._disk_bytes + self._staged_bytes

    @property
    def resident_bytes(self) -> int:
        """The bytes kept in memory."""
        return self._staged_bytes + self._recent_bytes

    def stage(self, data: bytes) -> str:
        """Keep bytes in memory until the next flush; the oldest go when too many wait."""
        ref = ref_of(data)
        with self._lock:
            if ref not in self._staged:
                self._staged[ref] = data
                self._staged_bytes += len(data)
            while self._staged_bytes > MAX_STAGED_BYTES:
                oldest = next(iter(self._staged))
                self._staged_bytes -= len(self._staged.pop(oldest))
        return ref

    def flush(self) -> None:
        """Commit what is staged. When the disk refuses, it stays staged and a later flush tries again."""
        if not self._staged or self._now() < self._retry_at:
            return
        with self._lock:
            batch = list(self._staged.items())
        with self._write_lock:
            try:
                self._write(batch)
            except (apsw.Error, OSError):
                self._give_up()
                return
        self._pause_s = FIRST_PAUSE_S
        self._written(batch)

    def shed(self) -> None:
        """Remove the file; what is asked for and not in memory reads as None."""
        self._drop_reader()
        with self._write_lock:
            self._close_connection()
            for path in (self._path, wal_path(self._path), shm_path(self._path)):
                path.unlink(missing_ok=True)
            self._disk_bytes = 0
            self._retry_at = self._now() + LONGEST_PAUSE_S

    def get(self, ref: str) -> bytes | None:
        """The bytes, their digest checked; None when they aren't there."""
        with self._lock:
            found = self._staged.get(ref) or self._recent.get(ref)
        if found is not None:
            return found
        digest = _digest(ref)
        if digest is None:
            return None
        try:
            with self._read_lock:
                if self._reader is None:
                    self._reader = open_reader(self._path, vfs=self._vfs)
                data: bytes | None = self._reader.execute("SELECT data FROM blob WHERE digest = ?", (digest,)).get
        except apsw.Error:
            self._drop_reader()
            return None
        return data if data is not None and hashlib.sha256(data).digest() == digest else None

    def close(self) -> None:
        """Write what is staged, leave all in the main file, and let go of it."""
        self._retry_at = 0.0
        self.flush()
        self._drop_reader()
        with self._write_lock:
            if self._connection is not None:
                try:
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                except apsw.Error:
                    self.failures += 1
                self._close_connection()

    def _open(self) -> None:
        try:
            self._connection = self._open_database()
        except _UNREADABLE:
            self._set_aside()
            self._connection = self._open_database()
        except (apsw.Error, OSError) as error:
            raise StorageFailed(f"{self._path} can't be opened: {error}", path=str(self._path)) from error

    def _open_database(self) -> apsw.Connection:
        connection = open_writer(self._path, vfs=self._vfs)
        try:
            copy_back(connection)
            connection.execute(_SCHEMA)
            self._disk_bytes = connection.execute("SELECT ifnull(sum(size), 0) FROM blob").get
        except BaseException:
            connection.close(True)
            raise
        return connection

    def _set_aside(self) -> None:
        number = 1
        while (aside := self._path.with_name(f"{FILE_NAME}.damaged-{number}")).exists():
            number += 1
        self.set_aside = aside.name
        rename_durable(self._path, aside)
        wal_path(self._path).unlink(missing_ok=True)
        shm_path(self._path).unlink(missing_ok=True)

    def _write(self, batch: list[tuple[str, bytes]]) -> None:
        """One transaction: the new in, the oldest out."""
        if self._connection is None:
            self._drop_reader()
            self._connection = self._open_database()
        connection, before = self._connection, self._disk_bytes
        connection.execute("BEGIN IMMEDIATE")
        ms = self._age_clock_ms()
        for ref, data in batch:
            connection.execute(
                "INSERT INTO blob(digest, ms, size, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (bytes.fromhex(ref[7:]), ms, len(data), data),
            )
            before += len(data) if connection.changes() else 0
        room = (
            self._max_bytes if free_bytes(self._path.parent) > MARGIN_BYTES else min(self._max_bytes, self._disk_bytes)
        )
        before -= self._evict(connection, before, room=room, now_ms=ms)
        connection.execute("COMMIT")
        self._disk_bytes = before
        self._wal_pages += connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, True)[0]
        if self._wal_pages >= CHECKPOINT_PAGES:
            pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._wal_pages = 0 if copied == pages else CHECKPOINT_PAGES // 2

    def _age_clock_ms(self) -> int:
        """Wall time at the start, and from there the monotonic clock: a step of the wall clock ages nothing."""
        return self._clock_ms + int(self._now() * 1000)

    def _evict(self, connection: apsw.Connection, held: int, *, room: int, now_ms: int) -> int:
        """Delete the oldest until size and age are within bounds; returns the bytes that went."""
        gone = 0
        rows = connection.execute("SELECT id, ms, size FROM blob ORDER BY id")
        for number, ms, size in rows:
            if held - gone <= room and now_ms - ms <= self._max_age_ms:
                break
            connection.execute("DELETE FROM blob WHERE id = ?", (number,))
            gone += size
        return gone

    def _written(self, batch: list[tuple[str, bytes]]) -> None:
        with self._lock:
            for ref, data in batch:
                if self._staged.pop(ref, None) is not None:
                    self._staged_bytes -= len(data)
                    self._recent[ref] = data
                    self._recent_bytes += len(data)
            while self._recent_bytes > RECENT_BYTES:
                self._recent_bytes -= len(self._recent.pop(next(iter(self._recent))))

    def _give_up(self) -> None:
        """For now: the outcome is unknown, so the connection goes; the next try opens anew, after eviction."""
        self.failures += 1
        self._close_connection()
        self._retry_at = self._now() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _close_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)

    def _drop_reader(self) -> None:
        with self._read_lock:
            reader, self._reader = self._reader, None
            if reader is not None:
                reader.close(True)


def _digest(ref: str) -> bytes | None:
    try:
        return bytes.fromhex(ref.removeprefix("sha256:"))
    except ValueError:
        return None
