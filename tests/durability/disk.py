"""A disk in memory that forgets: files and names as programs see them, and what of them a power cut would leave.

Strict where file systems differ: a file's bytes are kept from its own sync on, a name from the sync of its folder on,
and nothing else is promised. Bytes that were never synced may be there or not, sector by sector; names in the order in
which they were made.
"""

from __future__ import annotations

import errno
import os
import random
import stat
from fnmatch import fnmatch
from typing import Any

import msgspec

from runtime.durable.crashes import SECTOR_BYTES
from runtime.durable.faults import Operation, apply

CUTS = ("dropped", "kept", "torn")
FOLDER, FILE = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o644


class Node:
    """A file or a folder: programs see ``live`` and ``names``, a cut leaves ``kept`` and ``kept_names``."""

    def __init__(self, number: int, mode: int) -> None:
        self.number = number
        self.mode = mode
        self.live, self.kept = bytearray(), bytearray()
        self.waiting: list[Operation] = []
        self.names: dict[str, Node] = {}
        self.kept_names: dict[str, Node] = {}
        self.renamed: list[list[tuple[str, Node | None]]] = []  # each a change of names that a cut doesn't divide

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def change(self, operation: Operation) -> None:
        """Write or truncate, until a sync only in memory."""
        apply(self.live, operation)
        self.waiting.append(operation)

    def name(self, changes: list[tuple[str, Node | None]]) -> None:
        """Give or take names, until a sync of this folder only in memory."""
        _name(self.names, changes)
        self.renamed.append(changes)

    def sync(self) -> None:
        """All that waits is on the disk."""
        for operation in self.waiting:
            apply(self.kept, operation)
        for changes in self.renamed:
            _name(self.kept_names, changes)
        self.waiting.clear()
        self.renamed.clear()

    def fail_to_sync(self) -> None:
        """What waits counts as clean and never gets to the disk; who asks the disk itself sees the old bytes."""
        size = len(self.live)
        self.live = bytearray(self.kept)
        apply(self.live, Operation("truncate", at=size))
        self.waiting = [Operation("truncate", at=size)]

    def cut(self, cut: str, chance: random.Random, number: int) -> Node:
        """What is left of this file or folder, but for what lies in the folder."""
        left = Node(number, self.mode)
        left.kept = bytearray(self.kept)
        for operation in self.waiting:
            if cut == "kept" or (cut == "torn" and operation.kind == "truncate" and chance.random() < 0.5):
                apply(left.kept, operation)
            elif cut == "torn" and operation.kind == "write":
                _tear(left.kept, operation, chance)
        left.kept_names = dict(self.kept_names)
        count = {"dropped": 0, "kept": len(self.renamed)}.get(cut, chance.randint(0, len(self.renamed)))
        for changes in self.renamed[:count]:
            _name(left.kept_names, changes)
        left.live = bytearray(left.kept)
        return left


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to operations ``on`` files whose name is like ``file``, from now until it is lifted.

    ``error`` is an errno's name; ``short`` writes half before it, or only half and says so; ``delay_s`` only takes
    long; ``sync`` faults with ``forget`` lose what should have been synced.
    """

    on: list[str]
    file: str = "*"
    error: str = ""
    short: bool = False
    delay_s: float = 0.0
    forget: bool = False


class Disk:
    """The tree, its faults and its room. Not for several threads at once: its owner has a lock."""

    def __init__(self, *, honest: bool = True) -> None:
        self.honest = honest  # False: a sync says that it was done, and nothing was
        self.gone = False
        self.quota_bytes: int | None = None
        self.faults: list[Fault] = []
        self.shown = 0  # how many operations met a fault
        self._last = 1
        self.root = Node(1, FOLDER)

    # -- names -------------------------------------------------------------------------------------

    def find(self, path: str) -> Node:
        node = self.root
        for part in path.strip("/").split("/"):
            if part:
                if part not in node.names:
                    raise FileNotFoundError(errno.ENOENT, path)
                node = node.names[part]
        return node

    def make(self, path: str, mode: int) -> Node:
        folder, name = self._place(path)
        self._last += 1
        node = Node(self._last, mode)
        folder.name([(name, node)])
        return node

    def remove(self, path: str) -> None:
        node = self.find(path)
        if node.names:
            raise OSError(errno.ENOTEMPTY, path)
        folder, name = self._place(path)
        folder.name([(name, None)])

    def rename(self, old: str, new: str) -> None:
        node = self.find(old)
        source, old_name = self._place(old)
        target, new_name = self._place(new)
        if source is target:
            source.name([(new_name, node), (old_name, None)])
        else:
            target.name([(new_name, node)])
            source.name([(old_name, None)])

    def _place(self, path: str) -> tuple[Node, str]:
        above, _, name = path.rpartition("/")
        return self.find(above), name

    # -- bytes -------------------------------------------------------------------------------------

    def write(self, node: Node, data: bytes, at: int) -> int:
        self._check_room(at + len(data) - len(node.live))
        node.change(Operation("write", at=at, data=data))
        return len(data)

    def resize(self, node: Node, size: int) -> None:
        self._check_room(size - len(node.live))
        node.change(Operation("truncate", at=size))

    def _check_room(self, more: int) -> None:
        if more > 0 and self.quota_bytes is not None and self.free_bytes < more:
            raise OSError(errno.ENOSPC, "no room")

    def sync(self, node: Node) -> None:
        if self.honest:
            node.sync()

    @property
    def used_bytes(self) -> int:
        return sum(len(node.live) for _, node in walk(self.root, kept=False))

    @property
    def free_bytes(self) -> int:
        return 1 << 34 if self.quota_bytes is None else max(self.quota_bytes - self.used_bytes, 0)

    # -- faults ------------------------------------------------------------------------------------

    def fault(self, operation: str, path: str) -> Fault | None:
        """What is to happen to this operation; an answer of EIO to all of them once the disk is gone."""
        if self.gone:
            raise OSError(errno.EIO, "the disk is gone")
        name = path.rpartition("/")[2]
        for fault in self.faults:
            if operation in fault.on and fnmatch(name, fault.file):
                self.shown += 1
                return fault
        return None

    # -- cuts --------------------------------------------------------------------------------------

    def cut(self, cut: str, seed: int) -> Disk:
        """The power goes: the disk as it is when it comes back."""
        left, chance, met = Disk(honest=self.honest), random.Random(seed), {}

        def settle(node: Node) -> Node:
            if node.number not in met:
                image = met[node.number] = node.cut(cut, chance, node.number)
                image.kept_names = {name: settle(child) for name, child in image.kept_names.items()}
                image.names = dict(image.kept_names)
            return met[node.number]

        left.root = settle(self.root)
        left._last = max(met)
        return left

    def image(self) -> bytes:
        """What lies on the disk, as bytes to be read by ``load``."""
        files = {path: (node.mode, bytes(node.kept)) for path, node in walk(self.root, kept=True)}
        return msgspec.msgpack.encode(files)

    @classmethod
    def load(cls, image: bytes, **options: Any) -> Disk:
        disk = cls(**options)
        for path, (mode, data) in msgspec.msgpack.decode(image, type=dict[str, tuple[int, bytes]]).items():
            node = disk.make(path, mode)
            node.live = bytearray(data)
            node.kept = bytearray(data)
        for _, node in [("", disk.root), *walk(disk.root, kept=False)]:
            node.sync()
        return disk


def walk(folder: Node, *, kept: bool, above: str = "") -> list[tuple[str, Node]]:
    """Everything below a folder, folders before what is in them."""
    found = []
    for name, node in (folder.kept_names if kept else folder.names).items():
        found.append((f"{above}/{name}", node))
        found += walk(node, kept=kept, above=f"{above}/{name}")
    return found


def number_of(name: str) -> int:
    """The errno of a name such as EIO."""
    found: int = getattr(errno, name)
    assert os.strerror(found)
    return found


def _name(names: dict[str, Node], changes: list[tuple[str, Node | None]]) -> None:
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _tear(image: bytearray, operation: Operation, chance: random.Random) -> None:
    """Each sector of a write is there or not."""
    start, end = operation.at, operation.at + len(operation.data)
    while start < end:
        stop = min((start // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
        if chance.random() < 0.5:
            apply(image, Operation("write", at=start, data=operation.data[start - operation.at : stop - operation.at]))
        start = stop
