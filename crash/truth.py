"""What a recording wrote, kept beside the log and computed without its code, to compare every recovery with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runtime.abi.link import Row
from runtime.log.settings import Mark

GENESIS = bytes(32)


class Written(NamedTuple):
    """One entry as the log must have it."""

    seq: int
    type: str
    body: bytes
    chain: bytes


def link(before: bytes, seq: int, body: bytes) -> bytes:
    """The chain as docs/event-log.md specifies it."""
    return hashlib.sha256(before + seq.to_bytes(8, "big") + hashlib.sha256(body).digest()).digest()


class Truth:
    """All entries in their order, the marks that came with them, and the bytes that they name."""

    def __init__(self, before: Sequence[Written] = ()) -> None:
        self.entries: list[Written] = list(before)
        self.marks: list[tuple[int, Mark]] = []
        self.media: dict[str, bytes] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """The next entries that were admitted."""
        for row in rows:
            before = self.entries[-1].chain if self.entries else GENESIS
            self.entries.append(Written(row.seq, row.type, row.body, link(before, row.seq, row.body)))

    def marks_upto(self, seq: int) -> dict[tuple[str, str, str], int]:
        """The highest counter of each source and epoch among the entries up to ``seq``."""
        found: dict[tuple[str, str, str], int] = {}
        for at, mark in self.marks:
            if at <= seq:
                key = (mark.channel, mark.source_id, mark.epoch)
                found[key] = max(mark.high, found.get(key, 0))
        return found
