"""Reading a session's log from outside the kernel, whether or not one is running."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from runtime.abi.errors import LogDamaged, SessionNotFound, StorageFailed
from runtime.abi.link import Row
from runtime.abi.telemetry import TelemetryEvent
from runtime.durable.database import is_damage, one_view, open_reader
from runtime.durable.locks import FileLock
from runtime.log import catalog, chain, schema
from runtime.log.archive import Archive
from runtime.log.catalog import Catalog, Gap, Sealed
from runtime.log.pages import RETIRED_MEANWHILE, live_chain_at
from runtime.log.segment import type_of

ROWS_AT_ONCE = 1000
LOCK_WAIT_S = 10.0

_events = msgspec.json.Decoder(list[TelemetryEvent])


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a kernel on this session; ``after_seq`` is the last entry before it."""

    boot_id: str
    started_ms: int
    after_seq: int
    ended_ms: int | None
    clean: bool
    reopens: int
    note: str


class LogReader:
    """Reads in short pieces, each with its own connection and a shared lock, so that the writer is never in its way."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is the session's. Raises ``SessionNotFound``."""
        self._path = folder / schema.FILE_NAME
        self._lock_path = folder / "log.lock"
        self._archive = Archive(folder)
        if not self._path.exists():
            raise SessionNotFound(f"{folder} holds no log", folder=str(folder))

    @property
    def last_seq(self) -> int:
        """The last durable entry."""
        with self._connection() as connection:
            last = connection.execute("SELECT max(seq) FROM entry").get
            return int(last or catalog.read_floor(connection).seq)

    def catalog(self) -> Catalog:
        """What left the live rows: segments and gaps. Raises ``LogDamaged``, ``StorageFailed``."""
        with self._connection() as connection, one_view(connection):
            return catalog.read(connection)

    def rows(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        types: Collection[str] | None = None,
        limit: int | None = None,
    ) -> Iterator[Row]:
        """Entries in ``seq`` order, checked against the chain as they come. A type may end in ``*``.

        Raises ``LogDamaged`` at the first that isn't what was written, ``StorageFailed``.
        """
        previous, left = None, limit
        while left is None or left > 0:
            part, previous = self._part(after, upto, previous)
            if not part:
                return
            after = part[-1][0]
            found = [Row(seq, type_.decode(), body) for seq, type_, body, _ in part]
            chosen = found if types is None else [row for row in found if _matches(row.type, types)]
            chosen = chosen if left is None else chosen[:left]
            left = None if left is None else left - len(chosen)
            yield from chosen

    def telemetry(
        self, *, after_seq: int = 0, types: Collection[str] | None = None, limit: int | None = None
    ) -> Iterator[TelemetryEvent]:
        """Telemetry that was told after that entry, oldest first. Raises ``LogDamaged``, ``StorageFailed``."""
        number, left = 0, limit
        while left is None or left > 0:
            with self._connection() as connection:
                rows: list[Any] = connection.execute(
                    "SELECT id, body FROM telemetry WHERE id > ? AND after_seq >= ? ORDER BY id LIMIT 50",
                    (number, after_seq),
                ).fetchall()
            if not rows:
                return
            number = rows[-1][0]
            for event in (event for _, body in rows for event in _decode_events(body)):
                if event.after_seq >= after_seq and (types is None or _matches(event.type, types)):
                    yield event
                    left = None if left is None else left - 1
                    if left == 0:
                        return

    def boots(self) -> list[Boot]:
        """Every start of a kernel, oldest first."""
        columns = "boot_id, started_ms, after_seq, ended_ms, clean, reopens, note"
        with self._connection() as connection:
            rows = connection.execute(f"SELECT {columns} FROM boot ORDER BY number").fetchall()
        names = columns.split(", ")
        return [msgspec.convert(dict(zip(names, row, strict=True)), Boot, strict=False) for row in rows]

    def _part(self, after: int, upto: int | None, previous: bytes | None) -> tuple[list[chain.Raw], bytes]:
        """Some entries above ``after`` and the last chain; the first may stand for those that are gone."""
        after, end = max(after, 0), 2**63 - 1 if upto is None else upto
        for _ in range(RETIRED_MEANWHILE):
            with self._connection() as connection, one_view(connection):
                left = after < catalog.read_floor(connection).seq
                piece = catalog.find(connection, after + 1) if left else None
                if piece is None:
                    return self._live_part(connection, after, end, previous)
            try:
                return self._sealed_part(piece, after, end, previous)
            except FileNotFoundError:
                continue
        raise LogDamaged(f"the segment of entry {after + 1} is missing", seq=after + 1)

    def _live_part(
        self, connection: apsw.Connection, after: int, end: int, previous: bytes | None
    ) -> tuple[list[chain.Raw], bytes]:
        previous = previous or live_chain_at(connection, after)
        if previous is None:
            return [], b""
        rows: list[Any] = connection.execute(
            f"SELECT {chain.COLUMNS} FROM entry WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            (after, end, ROWS_AT_ONCE),
        ).fetchall()
        return rows, chain.check(rows, after=after, previous=previous)

    def _sealed_part(
        self, piece: Sealed | Gap, after: int, end: int, previous: bytes | None
    ) -> tuple[list[chain.Raw], bytes]:
        if end <= after:
            return [], b""
        if isinstance(piece, Gap):
            return [(min(piece.last, end), type_of(piece.body), piece.body, piece.chain)], piece.chain
        rows = [row for row in self._archive.piece(piece, after + 1).raws() if after < row[0] <= end]
        return rows, chain.check(rows, after=after, previous=previous or self._archive.before(piece, after))

    @contextmanager
    def _connection(self) -> Iterator[apsw.Connection]:
        lock = FileLock(self._lock_path)
        if not lock.acquire(shared=True, wait_s=LOCK_WAIT_S):
            raise StorageFailed("the log is being recovered", path=str(self._path))
        try:
            connection = open_reader(self._path)
            try:
                yield connection
            finally:
                connection.close(True)
        except (apsw.Error, UnicodeDecodeError) as error:
            if is_damage(error):
                raise LogDamaged(f"SQLite reports: {error}", seq=0) from error
            raise StorageFailed(f"{self._path} can't be read: {error}", path=str(self._path)) from error
        finally:
            lock.release()


def _matches(type_: str, wanted: Collection[str]) -> bool:
    return type_ in wanted or any(type_.startswith(name[:-1]) for name in wanted if name.endswith("*"))


def _decode_events(body: bytes) -> list[TelemetryEvent]:
    try:
        return _events.decode(body)
    except msgspec.DecodeError as error:
        raise LogDamaged(f"a row of telemetry isn't what was written: {error}", seq=0) from error
