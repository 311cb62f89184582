"""Pages: history in pieces, read beside the writer and checked against the chain before anyone sees it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import Hello, frame, receive_frame
from runtime.abi.errors import LogDamaged, StorageFailed, to_wire
from runtime.abi.link import PAGE_ENTRIES, PAGE_PROTOCOL, Page, PageRequest, Row
from runtime.durable.database import one_view
from runtime.log import catalog
from runtime.log.archive import Archive
from runtime.log.catalog import Gap, Sealed
from runtime.log.chain import COLUMNS, GENESIS, check, follow

MAX_REQUEST_BYTES = 1024
MAX_PAGE_BYTES = 8 * 1024 * 1024
RETIRED_MEANWHILE = 10
"""So often a segment that was noted and whose file is gone is looked up again: retention notes, then removes."""

# One row comes back: one step of SQLite, so one hand-over of the interpreter's lock for a whole page.
_SELECT = """
SELECT count(*), min(seq), max(seq), CAST(group_concat(body, ',') AS BLOB), group_concat(length(body))
FROM (SELECT seq, body FROM entry WHERE seq >= ? AND seq <= ? ORDER BY seq)
"""


def read_page(
    connection: apsw.Connection, archive: Archive, *, after: int, upto: int, limit: int = PAGE_ENTRIES
) -> Page:
    """The entries above ``after``, checked. Raises ``LogDamaged`` at the first that isn't what was written.

    Entries that can't be read any more are told by one entry in the place of the last of them that was asked for.
    """
    for _ in range(RETIRED_MEANWHILE):
        with one_view(connection):  # a seal moves rows between two statements
            left = after < catalog.read_floor(connection).seq
            piece = catalog.find(connection, after + 1) if left else None
            if piece is None:
                return _live_page(connection, after=after, upto=min(upto, after + min(limit, PAGE_ENTRIES)))
        try:
            return _sealed_page(archive, piece, after=after, upto=min(upto, after + min(limit, PAGE_ENTRIES)), end=upto)
        except FileNotFoundError:
            continue
    raise LogDamaged(f"the segment of entry {after + 1} is missing", seq=after + 1)


def _sealed_page(archive: Archive, piece: Sealed | Gap, *, after: int, upto: int, end: int) -> Page:
    if isinstance(piece, Gap):
        return Page(min(piece.last, end), 1, b"[%b]" % piece.body) if end > after else Page(after + 1, 0)
    count, bodies = archive.piece(piece, after + 1).part(after + 1, upto)
    while len(bodies) > MAX_PAGE_BYTES and count > 1:
        count, bodies = archive.piece(piece, after + 1).part(after + 1, after + count // 2)
    return Page(after + 1, count, b"[%b]" % bodies)


def _live_page(connection: apsw.Connection, *, after: int, upto: int) -> Page:
    previous = live_chain_at(connection, after)
    if previous is None:
        if connection.execute("SELECT EXISTS(SELECT 1 FROM entry WHERE seq > ?)", (after,)).get:
            raise LogDamaged(f"entry {after} is missing", seq=after)
        return Page(after + 1, 0)
    count, first, last, bodies, lengths = connection.execute(_SELECT, (after + 1, upto)).get
    if not count:
        return Page(after + 1, 0)
    if first != after + 1 or last != after + count:
        raise LogDamaged(f"an entry between {after + 1} and {last} is missing", seq=after + 1)
    found = follow(previous, after=after, bodies=bodies, lengths=list(map(int, lengths.split(","))))
    if found != live_chain_at(connection, last):
        _name_damage(connection, after=after, last=last, previous=previous)
    if len(bodies) > MAX_PAGE_BYTES and count > 1:  # a frame has its limit
        return _live_page(connection, after=after, upto=after + count // 2)
    return Page(first, count, b"[%b]" % bodies)


def live_chain_at(connection: apsw.Connection, seq: int) -> bytes | None:
    """The chain up to a live entry, or to the one before the first of them; None for any other."""
    chain: bytes | None = connection.execute("SELECT chain FROM entry WHERE seq = ?", (seq,)).get
    if chain is None:
        floor = catalog.read_floor(connection)
        return floor.chain if floor.seq == seq else None
    return chain


def chain_at(connection: apsw.Connection, archive: Archive, seq: int) -> bytes | None:
    """The chain up to an entry; None when the log doesn't hold it. Raises ``LogDamaged``."""
    if seq <= 0:
        return GENESIS
    for _ in range(RETIRED_MEANWHILE):
        with one_view(connection):
            link = live_chain_at(connection, seq)
            piece = catalog.find(connection, seq) if link is None else None
        if piece is None:
            return link
        try:
            return archive.chain_at(piece, seq)
        except FileNotFoundError:
            continue
    raise LogDamaged(f"the segment of entry {seq} is missing", seq=seq)


def _name_damage(connection: apsw.Connection, *, after: int, last: int, previous: bytes) -> None:
    """Row by row, to say which it is."""
    rows: Any = connection.execute(
        f"SELECT {COLUMNS} FROM entry WHERE seq > ? AND seq <= ? ORDER BY seq", (after, last)
    ).fetchall()
    check(rows, after=after, previous=previous)
    raise LogDamaged(f"an entry between {after + 1} and {last} reads differently each time", seq=after + 1)


def resident_page(rows: list[Row], after: int) -> Page:
    """A page from rows in memory that follow ``after``."""
    while len(rows) > 1 and sum(len(row.body) for row in rows) > MAX_PAGE_BYTES:
        rows = rows[: len(rows) // 2]
    return Page(after + 1, len(rows), b"[" + b",".join([row.body for row in rows]) + b"]")


class PageService:
    """Answers one peer's requests in a thread of its own; anything but a request ends the connection."""

    def __init__(
        self, read: Callable[[int, int, int], Page], *, served: Callable[[], None], refused: Callable[[str], None]
    ) -> None:
        self._read = read
        self._served = served
        self._refused = refused

    def serve(self, sock: socket.socket) -> None:
        """Until the peer leaves. Blocks."""
        with sock:
            try:
                self._greet(sock)
                while (payload := receive_frame(sock, MAX_REQUEST_BYTES)) is not None:
                    request = msgspec.msgpack.decode(payload, type=PageRequest)
                    self._send(sock, self._answer(request))
                    self._served()
            except (FrameInvalid, msgspec.DecodeError) as error:
                self._refused(str(error))
            except OSError as error:
                self._refused(f"the connection broke: {error}")

    def _greet(self, sock: socket.socket) -> None:
        payload = receive_frame(sock, MAX_REQUEST_BYTES)
        if payload is None:
            return
        hello = msgspec.msgpack.decode(payload, type=Hello)
        if hello.protocol != PAGE_PROTOCOL:
            raise FrameInvalid(f"the peer speaks {hello.protocol[:40]!r}, not {PAGE_PROTOCOL!r}")
        self._send(sock, Hello(protocol=PAGE_PROTOCOL))

    def _answer(self, request: PageRequest) -> Page:
        try:
            return self._read(request.after, request.upto, min(max(request.limit, 1), PAGE_ENTRIES))
        except AxonError as error:
            return Page(request.after + 1, 0, error=to_wire(error))
        except (apsw.Error, OSError) as error:
            return Page(request.after + 1, 0, error=to_wire(StorageFailed(f"the log can't be read: {error}")))

    def _send(self, sock: socket.socket, message: msgspec.Struct) -> None:
        sock.sendall(frame(msgspec.msgpack.encode(message)))
