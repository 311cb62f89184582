"""What the database says about entries that left it: which segment holds them, or that nobody does any more.

Every record is MessagePack with a checksum beside it: these rows have no chain of their own. Together the segments and
gaps tell of every entry from 1 to the floor, which is where the live rows begin.
"""

from __future__ import annotations

import zlib
from typing import Any, Literal, TypeVar

import apsw
import msgspec

from runtime.abi.entries import decode
from runtime.abi.errors import LogDamaged
from runtime.log.chain import GENESIS
from runtime.log.segment import file_name

R = TypeVar("R", bound=msgspec.Struct)


class Floor(msgspec.Struct, frozen=True, array_like=True):
    """The last entry that left the live rows, and the chain up to it."""

    seq: int = 0
    chain: bytes = GENESIS


class Sealed(msgspec.Struct, frozen=True, array_like=True):
    """A segment as the log noted it; ``aged_s`` is the session's running time when it was sealed."""

    first: int
    last: int
    before: bytes
    chain: bytes
    size_bytes: int
    digest: bytes
    types: dict[str, int]
    aged_s: float

    @property
    def name(self) -> str:
        """Its file's name."""
        return file_name(self.first, self.last)


class Gap(msgspec.Struct, frozen=True, array_like=True):
    """Entries that can't be read any more; ``body`` is the entry that says so in their place."""

    kind: Literal["retention", "damage"]
    first: int
    last: int
    chain: bytes
    types: dict[str, int]
    body: bytes


class Catalog(msgspec.Struct, frozen=True):
    """All of it, in order."""

    floor: Floor
    segments: list[Sealed]
    gaps: list[Gap]

    @property
    def first_seq(self) -> int:
        """The oldest entry that can be read."""
        return self.gaps[0].last + 1 if self.gaps and self.gaps[0].first == 1 else 1

    @property
    def retired(self) -> int:
        """Entries up to here were removed by retention."""
        return max((gap.last for gap in self.gaps if gap.kind == "retention"), default=0)

    @property
    def lost(self) -> list[Gap]:
        """What damage took."""
        return [gap for gap in self.gaps if gap.kind == "damage"]

    @property
    def pieces(self) -> list[Sealed | Gap]:
        """Segments and gaps in the order of their entries."""
        pieces: list[Sealed | Gap] = [*self.segments, *self.gaps]
        return sorted(pieces, key=lambda each: each.first)

    def check(self) -> None:
        """Raise ``LogDamaged`` unless segments and gaps tell of every entry up to the floor, one chain through all."""
        after, link = 0, GENESIS
        for piece in self.pieces:
            fits = not isinstance(piece, Sealed) or piece.before == link
            if piece.first != after + 1 or piece.last < piece.first or not fits:
                raise LogDamaged(f"what is noted of the segments doesn't fit at entry {after + 1}", seq=after + 1)
            after, link = piece.last, piece.chain
        if self.floor.seq > after or (self.floor.seq == after and self.floor.chain != link):
            raise LogDamaged(f"no segment holds entry {after + 1}", seq=after + 1)


def read(connection: apsw.Connection) -> Catalog:
    """Everything noted. Raises ``LogDamaged`` for a record that isn't what was written."""
    segments: Any = connection.execute("SELECT record, sum FROM segment ORDER BY first")
    gaps: Any = connection.execute("SELECT record, sum FROM gap ORDER BY first")
    return Catalog(
        read_floor(connection),
        [_decode(*row, kind=Sealed) for row in segments],
        [_decode(*row, kind=Gap) for row in gaps],
    )


def read_floor(connection: apsw.Connection) -> Floor:
    """Where the live rows begin."""
    found: Any = connection.execute("SELECT record, sum FROM floor").get
    return Floor() if found is None else _decode(*found, kind=Floor)


def sealed_upto(connection: apsw.Connection) -> int:
    """The last entry that lies in a segment, or did; live rows up to it only wait to be deleted."""
    noted = "SELECT max((SELECT ifnull(max(last), 0) FROM segment), (SELECT ifnull(max(last), 0) FROM gap))"
    return int(connection.execute(noted).get)


def find(connection: apsw.Connection, seq: int) -> Sealed | Gap | None:
    """The segment or gap that tells of an entry; None for one that never left the live rows."""
    query = "SELECT record, sum FROM {} WHERE first <= ? ORDER BY first DESC LIMIT 1"
    segment: Any = connection.execute(query.format("segment"), (seq,)).get
    gap: Any = connection.execute(query.format("gap"), (seq,)).get
    found: list[Sealed | Gap] = []
    if segment is not None:
        found.append(_decode(*segment, kind=Sealed))
    if gap is not None:
        found.append(_decode(*gap, kind=Gap))
    return next((piece for piece in found if piece.last >= seq), None)


def last_of_type(connection: apsw.Connection, type_: str) -> int:
    """The last entry of a type among those that left the live rows; 0 if none."""
    return max((piece.types.get(type_, 0) for piece in read(connection).pieces), default=0)


def put_floor(connection: apsw.Connection, floor: Floor) -> None:
    """Note where the live rows begin now."""
    connection.execute("INSERT OR REPLACE INTO floor(one, record, sum) VALUES (1, ?, ?)", _encode(floor))


def put_segment(connection: apsw.Connection, sealed: Sealed) -> None:
    """Note a segment whose file is durable; nothing happens when it is noted already."""
    connection.execute(
        "INSERT OR REPLACE INTO segment(first, last, record, sum) VALUES (?, ?, ?, ?)",
        (sealed.first, sealed.last, *_encode(sealed)),
    )


def put_gap(connection: apsw.Connection, gap: Gap) -> None:
    """Note that a range can't be read any more, in the place of all that told of it before."""
    for table in ("segment", "gap"):
        connection.execute(f"DELETE FROM {table} WHERE first >= ? AND last <= ?", (gap.first, gap.last))
    connection.execute(
        "INSERT OR REPLACE INTO gap(first, last, record, sum) VALUES (?, ?, ?, ?)", (gap.first, gap.last, *_encode(gap))
    )


def drop_segment(connection: apsw.Connection, first: int) -> None:
    """Forget a segment whose entries are all still live."""
    connection.execute("DELETE FROM segment WHERE first = ?", (first,))


def carry(connection: apsw.Connection, *, opened: dict[str, tuple[int, bytes]], closed: set[str]) -> None:
    """Keep the blocks that were started in a sealed range and had no result there; drop those that got one."""
    for action in closed:
        connection.execute("DELETE FROM carried WHERE action = ?", (action,))
    for action, (seq, body) in opened.items():
        connection.execute(
            "INSERT OR REPLACE INTO carried(action, seq, body, sum) VALUES (?, ?, ?, ?)",
            (action, seq, body, zlib.crc32(body)),
        )


def carried(connection: apsw.Connection) -> list[tuple[int, bytes]]:
    """Actions whose entry was sealed before their result came, as seq and body."""
    rows: Any = connection.execute("SELECT seq, body, sum FROM carried ORDER BY seq")
    found = []
    for seq, body, total in rows:
        if not isinstance(body, bytes) or zlib.crc32(body) != total:
            raise LogDamaged(f"the unfinished block {seq} isn't what was written", seq=seq)
        found.append((seq, body))
    return found


def action_of(body: bytes, seq: int) -> str:
    """Which block an action's entry, or a result's, is about."""
    return str(getattr(decode(body, seq).data, "action", ""))


def _encode(record: msgspec.Struct) -> tuple[bytes, int]:
    encoded = msgspec.msgpack.encode(record)
    return encoded, zlib.crc32(encoded)


def _decode(record: Any, total: Any, *, kind: type[R]) -> R:
    try:
        if zlib.crc32(record) == total:
            return msgspec.msgpack.decode(record, type=kind)
    except (msgspec.MsgspecError, TypeError) as error:
        raise LogDamaged(f"what is noted of a segment can't be read: {error}", seq=0) from error
    raise LogDamaged("what is noted of a segment isn't what was written", seq=0)
