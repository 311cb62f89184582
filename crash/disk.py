"""A disk as a cut leaves it: a file's bytes are kept from its own sync on, a name from the sync of its folder on.

Everything else is there or not: which, and in what order, a ``Cut`` says. Nothing more is promised than POSIX does, so
that what holds here holds on every file system that honours a sync.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Mapping
from typing import Literal, TypeAlias

from runtime.durable.crashes import BLOCK_BYTES, SECTOR_BYTES
from runtime.durable.faults import Operation, apply

Kind: TypeAlias = Literal[
    "dropped", "kept", "last only", "last lost", "prefix", "subset", "reordered", "torn", "last torn", "garbage",
    "extended", "exposed",
]  # fmt: skip
"""What becomes of bytes that weren't synced.

``dropped``, ``kept``: none, all. ``last only``, ``last lost``, ``prefix``: some, in their order. ``subset``: any of
them; ``reordered``: in any order as well. ``torn``: any of their 512-byte sectors; ``last torn``: all but some sectors
of the last. ``garbage``: any of them, and the 4 KiB blocks that one was being written to are noise. ``extended``: the
file has its new size, the new room is zeros; ``exposed``: it is noise.
"""
KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]  # a Literal knows its words


class Node:
    """A file (or a folder, which has no bytes): what was synced, and what was asked for since."""

    def __init__(self, synced: bytes = b"", *, folder: bool = False) -> None:
        self.folder = folder
        self.pending: list[Operation] = []
        self._synced = bytearray(synced)
        self._image: bytes | None = None
        self._digest = b""

    def take(self, operation: Operation) -> None:
        """A write or a truncation, which waits until the next sync."""
        self.pending.append(operation)

    def sync(self) -> None:
        """All that waits is on the disk."""
        for operation in self.pending:
            apply(self._synced, operation)
        if self.pending:
            self.pending = []
            self._image = None

    def lose(self, seed: int) -> None:
        """A sync failed: some sectors got there, the rest never will, and everybody believes that nothing waits."""
        self._synced = bytearray(_torn(self._synced, self.pending, random.Random(seed)))
        self.pending = []
        self._image = None

    def live(self) -> bytes:
        """What waits included: the file as programs see it after an eviction."""
        image = bytearray(self._synced)
        for operation in self.pending:
            apply(image, operation)
        return bytes(image)

    def settled(self) -> tuple[bytes, bytes]:
        """What was synced, and its digest."""
        if self._image is None:
            self._image = bytes(self._synced)
            self._digest = hashlib.blake2b(self._image, digest_size=16).digest()
        return self._image, self._digest

    def image(self, kind: Kind, rng: random.Random) -> tuple[bytes, bytes]:
        """The bytes after a cut, and their digest."""
        if not self.pending or kind == "dropped":
            return self.settled()
        found = bytes(_image(self._synced, self.pending, kind, rng))
        return found, hashlib.blake2b(found, digest_size=16).digest()


def _image(synced: bytearray, pending: list[Operation], kind: Kind, rng: random.Random) -> bytearray:
    if kind in ("torn", "last torn"):
        sure = [] if kind == "torn" else pending[:-1]
        return _torn(_done(synced, sure), pending[len(sure) :], rng)
    if kind in ("extended", "exposed"):
        return _sized(synced, pending, rng if kind == "exposed" else None)
    if kind == "garbage":
        return _spoilt(synced, pending, rng)
    return _done(synced, _chosen(pending, kind, rng))


def _chosen(pending: list[Operation], kind: Kind, rng: random.Random) -> list[Operation]:
    """The operations that got to the disk, in the order in which they did."""
    if kind == "last only":
        return pending[-1:]
    if kind == "last lost":
        return pending[:-1]
    if kind == "prefix":
        return pending[: rng.randint(0, len(pending))]
    if kind in ("subset", "reordered"):
        some = [operation for operation in pending if rng.random() < 0.5]
        if kind == "reordered":
            rng.shuffle(some)
        return some
    return pending


def _done(synced: bytearray, operations: list[Operation]) -> bytearray:
    image = bytearray(synced)
    for operation in operations:
        apply(image, operation)
    return image


def _torn(synced: bytearray, pending: list[Operation], rng: random.Random) -> bytearray:
    """Sectors are those of the disk, so a write's first and last may be parts of one."""
    image = bytearray(synced)
    for operation in pending:
        if operation.kind != "write":
            if rng.random() < 0.5:
                apply(image, operation)
            continue
        start, end = operation.at, operation.at + len(operation.data)
        while start < end:
            stop = min((start // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
            if rng.random() < 0.5:
                piece = operation.data[start - operation.at : stop - operation.at]
                apply(image, Operation("write", operation.file, start, piece))
            start = stop
    return image


def _sized(synced: bytearray, pending: list[Operation], rng: random.Random | None) -> bytearray:
    """The file's size got to the disk before its bytes did."""
    size, held = len(synced), len(synced)
    for operation in pending:
        if operation.kind == "truncate":
            size, held = operation.at, min(held, operation.at)
        else:
            size = max(size, operation.at + len(operation.data))
    room = size - held
    return synced[:held] + (bytes(room) if rng is None else rng.randbytes(room))


def _spoilt(synced: bytearray, pending: list[Operation], rng: random.Random) -> bytearray:
    """The power went while blocks were being written: nobody knows what is in them."""
    image = _done(synced, _chosen(pending, "subset", rng))
    writes = [operation for operation in pending if operation.kind == "write" and operation.data]
    if writes:
        hit = rng.choice(writes[-4:])
        first = hit.at // BLOCK_BYTES
        last = (hit.at + len(hit.data) - 1) // BLOCK_BYTES
        block = rng.randint(first, last)
        apply(image, Operation("write", hit.file, block * BLOCK_BYTES, rng.randbytes(BLOCK_BYTES)))
    return image


Names: TypeAlias = dict[str, Node]


class Disk:
    """All files below one folder, whose own name is ""."""

    def __init__(self, before: Mapping[str, bytes] | None = None, *, honest: bool = True) -> None:
        self._honest = honest  # False: a sync says that it was done, and nothing was
        self._kept: Names = {"": Node(folder=True)}
        for name, content in (before or {}).items():
            above = os.path.dirname(name)
            while above and above not in self._kept:
                self._kept[above] = Node(folder=True)
                above = os.path.dirname(above)
            self._kept[name] = Node(content)
        self._live: Names = dict(self._kept)
        self._changes: dict[str, list[Names | dict[str, Node | None]]] = {}  # by folder, each done whole or not

    def take(self, operation: Operation) -> None:
        """One operation of a tape, notes aside."""
        name = operation.file
        if operation.kind == "make":
            self._change(os.path.dirname(name), {name: Node(folder=operation.note == "folder")})
        elif operation.kind == "delete":
            self._change(os.path.dirname(name), {name: None})
        elif operation.kind == "rename":
            self._rename(name, operation.note)
        elif operation.kind == "sync":
            self._sync(name)
        elif operation.kind == "lose":
            self._live[name].lose(operation.at)
        else:
            self._live[name].take(operation)

    def live(self, name: str) -> bytes | None:
        """What programs see of a file once nothing of it is in a cache; None without one."""
        node = self._live.get(name)
        return None if node is None else node.live()

    @property
    def waits(self) -> bool:
        """Whether any name waits for its folder's sync."""
        return any(self._changes.values())

    def kept_names(self, part: float, rng: random.Random) -> Names:
        """The names after a cut; of those that wait, the first ``part`` (0 to 1), or of each folder some, below 0."""
        if not self.waits:
            return self._kept
        names = dict(self._kept)
        for changes in self._changes.values():
            count = rng.randint(0, len(changes)) if part < 0 else round(part * len(changes))
            for change in changes[:count]:
                _apply_names(names, change)
        return {name: node for name, node in names.items() if _reachable(name, names)}

    def _rename(self, old: str, new: str) -> None:
        node = self._live[old]
        above, target = os.path.dirname(old), os.path.dirname(new)
        if above == target:
            self._change(above, {new: node, old: None})
        else:
            self._change(target, {new: node})
            self._change(above, {old: None})

    def _change(self, folder: str, change: dict[str, Node | None]) -> None:
        _apply_names(self._live, change)
        self._changes.setdefault(folder, []).append(change)

    def _sync(self, name: str) -> None:
        node = self._live.get(name)
        if node is None or not self._honest:
            return
        node.sync()
        for change in self._changes.pop(name, []):
            _apply_names(self._kept, change)


def _apply_names(names: Names, change: Mapping[str, Node | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _reachable(name: str, names: Names) -> bool:
    """A file whose folder's name is lost is lost with it."""
    while name:
        name = os.path.dirname(name)
        if name not in names:
            return False
    return True
