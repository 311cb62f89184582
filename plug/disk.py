"""A disk with a volatile cache: what was written is gone at a cut unless it was flushed, whole or in torn sectors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec

SECTOR = 512


class Write(msgspec.Struct, frozen=True):
    """Bytes on their way to the disk."""

    offset: int
    data: bytes


class Disk:
    """The durable bytes, and the writes since that only the cache knows.

    ``ignored`` is the share of flushes that the disk confirms without doing them, as some cards do.
    """

    def __init__(self, durable: bytearray, *, seed: int, ignored: float = 0.0) -> None:
        self.durable = durable
        self.pending: list[Write] = []
        self.flushes = 0
        self.flushes_ignored = 0
        self._seen = bytearray(durable)
        self._random = random.Random(seed)
        self._ignored = ignored

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.durable)

    def read(self, offset: int, length: int) -> bytes:
        """What the machine sees: its own writes included."""
        return bytes(self._seen[offset : offset + length])

    def write(self, offset: int, data: bytes, *, through: bool = False) -> None:
        """Take a write into the cache; ``through`` (FUA) puts this one on the disk at once."""
        self._seen[offset : offset + len(data)] = data
        if through:
            self.durable[offset : offset + len(data)] = data
        else:
            self.pending.append(Write(offset, data))

    def flush(self) -> None:
        """Make all that was written durable, unless this disk lies about it."""
        self.flushes += 1
        if self._random.random() < self._ignored:
            self.flushes_ignored += 1
            return
        for write in self.pending:
            self.durable[write.offset : write.offset + len(write.data)] = write.data
        self.pending.clear()

    def cut(self) -> bytearray:
        """The disk after the plug was pulled: every pending write lost, kept, or torn between sectors, at random."""
        image = bytearray(self.durable)
        kept = self._random.choice((0.0, 0.5, 0.9, 1.0))
        for write in self.pending:
            for offset, piece in self._survivors(write, kept):
                image[offset : offset + len(piece)] = piece
        return image

    def copy(self, *, seed: int, ignored: float = 0.0) -> Disk:
        """The same disk at this moment, cache included, going another way from here."""
        other = Disk(bytearray(self.durable), seed=seed, ignored=ignored)
        other.pending = list(self.pending)
        other._seen = bytearray(self._seen)
        return other

    def _survivors(self, write: Write, kept: float) -> Iterator[tuple[int, bytes]]:
        torn = self._random.random() < 0.2
        if not torn:
            if self._random.random() < kept:
                yield write.offset, write.data
            return
        for start in range(0, len(write.data), SECTOR):
            if self._random.random() < kept:
                yield write.offset + start, write.data[start : start + SECTOR]


def from_file(path: Path, *, seed: int) -> Disk:
    """A disk whose durable bytes are that file's."""
    return Disk(bytearray(path.read_bytes()), seed=seed)
