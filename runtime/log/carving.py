"""Entries from the bytes of a damaged database, past whatever its index pages say; the chain tells which are true.

Every page of the main file and every frame of the write-ahead log is looked at. Entries never change, so any copy of
one will do, and a wrong one doesn't fit the chain. The page and record formats are those of sqlite.org/fileformat2.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from runtime.abi.errors import LogDamaged
from runtime.durable.database import wal_path
from runtime.log import chain
from runtime.log.chain import Raw
from runtime.log.wal import FRAME, HEADER, PAGE_BYTES

LEAF = 0x0D
MAX_LOCAL = PAGE_BYTES - 35
MIN_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
OVERFLOW_BYTES = PAGE_BYTES - 4
MAX_PAYLOAD = 1024 * 1024
CHUNK_PAGES = 256


class Pages:
    """The pages of a database file and of the frames beside it, read by plain file calls."""

    def __init__(self, path: Path) -> None:
        self._main = os.open(path, os.O_RDONLY)
        self._wal = os.open(wal_path(path), os.O_RDONLY) if wal_path(path).exists() else None
        self._frames: dict[int, int] = {}  # page number: where its newest image starts in the write-ahead log
        self._spots: list[int] = []
        if self._wal is not None:
            step = FRAME.size + PAGE_BYTES
            for at in range(HEADER.size, os.fstat(self._wal).st_size - step + 1, step):
                number = FRAME.unpack(os.pread(self._wal, FRAME.size, at))[0]
                self._frames[number] = at + FRAME.size
                self._spots.append(at + FRAME.size)

    def close(self) -> None:
        """Close the files."""
        os.close(self._main)
        if self._wal is not None:
            os.close(self._wal)

    def leaves(self) -> list[tuple[int, bool, int]]:
        """Every page that looks like a table's leaf: its first key, whether it is a frame, and where it starts."""
        found = []
        for start in range(0, os.fstat(self._main).st_size, CHUNK_PAGES * PAGE_BYTES):
            chunk = os.pread(self._main, CHUNK_PAGES * PAGE_BYTES, start)
            for offset in range(0, len(chunk) - PAGE_BYTES + 1, PAGE_BYTES):
                if chunk[offset] == LEAF:
                    found.append((first_key(chunk[offset : offset + PAGE_BYTES]), False, start + offset))
        for spot in self._spots:
            page = self.read(in_wal=True, at=spot)
            if page[:1] == bytes([LEAF]):
                found.append((first_key(page), True, spot))
        return sorted(found)

    def read(self, *, in_wal: bool, at: int) -> bytes:
        """One page."""
        file = self._wal if in_wal and self._wal is not None else self._main
        return os.pread(file, PAGE_BYTES, at)

    def numbered(self, number: int, *, newest: bool) -> bytes:
        """A page by its number: its newest image, or the one in the main file."""
        if newest and number in self._frames:
            return self.read(in_wal=True, at=self._frames[number])
        return self.read(in_wal=False, at=(number - 1) * PAGE_BYTES)


def carve(path: Path, after: int, previous: bytes) -> Iterator[Raw]:
    """Rows that follow ``after`` without a hole and fit the chain from ``previous``."""
    if not path.exists():
        return
    pages = Pages(path)
    try:
        for first, in_wal, at in pages.leaves():
            if first > after + 1:
                return  # leaves come by their first key: the next entry is nowhere
            for row in rows_of(pages, pages.read(in_wal=in_wal, at=at), wanted=after + 1):
                if _fits(row, after=after, previous=previous):
                    yield row
                    after, previous = row[0], row[3]
    finally:
        pages.close()


def rows_of(pages: Pages, page: bytes, *, wanted: int) -> Iterator[Raw]:
    """What on a leaf has the shape of an entry, from ``wanted`` on; a long one in each way its rest may lie."""
    for offset in _cells(page):
        for newest in (True, False):
            try:
                seq, payload = _payload(pages, page, offset, wanted=wanted, newest=newest)
                row = _row(seq, payload)
            except (IndexError, ValueError, struct.error):
                continue
            if row is not None:
                yield row
            if len(payload) <= MAX_LOCAL:
                break


def first_key(page: bytes) -> int:
    """The smallest key on a leaf, by its first cell; beyond any when that can't be read."""
    try:
        offset = next(iter(_cells(page)))
        _, at = varint(page, offset)
        return varint(page, at)[0]
    except (StopIteration, IndexError, struct.error):
        return 2**63


def varint(data: bytes, at: int) -> tuple[int, int]:
    """SQLite's variable-length integer, and where it ends. Raises ``IndexError``."""
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at
    return (value << 8) | data[at], at + 1


def _cells(page: bytes) -> tuple[int, ...]:
    count = min(int.from_bytes(page[3:5], "big"), (PAGE_BYTES - 8) // 2)
    return struct.unpack_from(f">{count}H", page, 8)


def _payload(pages: Pages, page: bytes, offset: int, *, wanted: int, newest: bool) -> tuple[int, bytes]:
    size, at = varint(page, offset)
    seq, at = varint(page, at)
    if seq < wanted or size > MAX_PAYLOAD:
        raise ValueError
    if size <= MAX_LOCAL:
        return seq, page[at : at + size]
    local = MIN_LOCAL + (size - MIN_LOCAL) % OVERFLOW_BYTES
    local = local if local <= MAX_LOCAL else MIN_LOCAL
    data = bytearray(page[at : at + local])
    number = int.from_bytes(page[at + local : at + local + 4], "big")
    while len(data) < size and number:
        more = pages.numbered(number, newest=newest)
        data += more[4 : 4 + size - len(data)]
        if len(more) < PAGE_BYTES:
            break
        number = int.from_bytes(more[:4], "big")
    return seq, bytes(data)


def _row(seq: int, payload: bytes) -> Raw | None:
    """The record ``(NULL, text, blob, 32-byte blob)``; None for one of another table."""
    head_size, at = varint(payload, 0)
    kinds: list[int] = []
    while at < head_size and len(kinds) < 5:
        kind, at = varint(payload, at)
        kinds.append(kind)
    if len(kinds) != 4 or kinds[0] != 0 or kinds[1] < 13 or not kinds[1] % 2 or kinds[2] < 12 or kinds[2] % 2:
        return None
    ends = [head_size + (kinds[1] - 13) // 2]
    ends.append(ends[0] + (kinds[2] - 12) // 2)
    if kinds[3] != 12 + 2 * 32 or len(payload) < ends[1] + 32:
        return None
    return seq, payload[head_size : ends[0]], payload[ends[0] : ends[1]], payload[ends[1] : ends[1] + 32]


def _fits(row: Raw, *, after: int, previous: bytes) -> bool:
    try:
        chain.check([row], after=after, previous=previous)
    except LogDamaged:
        return False
    return True
