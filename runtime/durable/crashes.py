"""From a record of what SQLite did to what a power cut could have left on the disk at every moment of it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from runtime.durable.faults import Operation, apply

SECTOR_BYTES = 512
BLOCK_BYTES = 4096


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The files after one cut, how it was made, and the last note before it."""

    files: dict[str, bytes]
    cut: str
    operation: int
    note: Any


class _File:
    """Bytes that were synced, and operations since then that may be on the disk or not."""

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = bytearray(synced)
        self.pending: list[Operation] = []

    def take(self, operation: Operation) -> None:
        if operation.kind == "sync":
            for waiting in self.pending:
                apply(self.synced, waiting)
            self.pending.clear()
        else:
            self.pending.append(operation)

    def image(self, cut: str, rng: random.Random) -> bytes:
        image = bytearray(self.synced)
        if cut == "dropped":
            return bytes(image)
        pending = self.pending
        if cut == "last only":
            pending = pending[-1:]
        elif cut == "last lost":
            pending = pending[:-1]
        for operation in pending:
            if cut == "torn" and operation.kind == "write":
                _apply_torn(image, operation, rng)
            else:
                apply(image, operation)
        if cut == "garbage" and self.pending and self.pending[-1].kind == "write":
            _spoil(image, self.pending[-1], rng)
        return bytes(image)


CUTS = ("dropped", "kept", "last only", "last lost", "torn", "garbage", "mixed")


def states(
    operations: list[Operation],
    *,
    before: dict[str, bytes] | None = None,
    seed: int = 0,
    cuts: tuple[str, ...] = CUTS,
    share: float = 1.0,
) -> Iterator[State]:
    """Every distinct set of files that a cut after each operation can leave. A deletion counts as done at once,
    and so does a rename: the state before it was looked at already.

    ``before`` are the files as they lay on the disk when the record began; ``share`` of the operations are looked at.

    ``torn`` keeps or drops each 512-byte sector of an unsynced write; ``garbage`` turns the 4 KiB blocks that the
    last write touches into noise; ``mixed`` lets each file have its own cut.
    """
    rng = random.Random(seed)
    files = {name: _File(image) for name, image in (before or {}).items()}
    note: Any = None
    seen: set[bytes] = set()
    for index, operation in enumerate(operations):
        if operation.kind == "note":
            note = operation.note
            continue
        if operation.kind == "delete":
            files.pop(operation.file, None)
        elif operation.kind == "rename":
            files[operation.note] = files.pop(operation.file)
        else:
            files.setdefault(operation.file, _File()).take(operation)
        if rng.random() >= share:
            continue
        for cut in cuts:
            images = {
                name: file.image(rng.choice(CUTS[:-1]) if cut == "mixed" else cut, rng) for name, file in files.items()
            }
            key = _digest(images, note)
            if key not in seen:
                seen.add(key)
                yield State(files=images, cut=cut, operation=index, note=note)


def _apply_torn(image: bytearray, operation: Operation, rng: random.Random) -> None:
    """Sectors are those of the disk, so a write's first and last may be parts of one."""
    start, end = operation.at, operation.at + len(operation.data)
    while start < end:
        stop = min((start // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
        if rng.random() < 0.5:
            piece = operation.data[start - operation.at : stop - operation.at]
            apply(image, Operation("write", operation.file, start, piece))
        start = stop


def _spoil(image: bytearray, operation: Operation, rng: random.Random) -> None:
    first = operation.at // BLOCK_BYTES * BLOCK_BYTES
    last = (operation.at + len(operation.data) - 1) // BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES
    apply(image, Operation("write", operation.file, first, rng.randbytes(last - first)))


def _digest(images: dict[str, bytes], note: Any) -> bytes:
    whole = hashlib.blake2b(repr(note).encode())
    for name in sorted(images):
        whole.update(name.encode())
        whole.update(images[name])
    return whole.digest()
