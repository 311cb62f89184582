"""Every distinct state of the disk that a cut could leave, at every moment of a tape."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from crash.disk import KINDS, Disk, Kind, Names
from runtime.durable.faults import Operation

MIXES = 4
"""So many states of each moment in which every file has a fate of its own."""
STALE = 0.05
"""The share of states with noise where SQLite keeps its index, which no sync ever orders."""
STALE_BYTES = 32 * 1024


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The files and folders after a cut, how it was made, and what had been promised by then."""

    files: dict[str, bytes]
    folders: list[str]
    digest: bytes
    cut: str
    operation: int
    note: Any


def states(
    operations: list[Operation],
    *,
    rng: random.Random,
    before: Mapping[str, bytes] | None = None,
    share: float = 1.0,
    honest: bool = True,
    kinds: tuple[Kind, ...] = KINDS,
) -> Iterator[State]:
    """Cut after a ``share`` of the operations, in every kind; the same state may come again with another note.

    ``before`` lay on the disk when the tape began. On a disk that isn't ``honest`` no sync does anything.
    """
    disk, note = Disk(before, honest=honest), None
    for index, operation in enumerate(operations):
        if operation.kind == "note":
            note = operation.note
        else:
            disk.take(operation)
        if note is not None and rng.random() < share:
            for cut, files, folders, digest in _cut(disk, rng, kinds):
                yield State(files=files, folders=folders, digest=digest, cut=cut, operation=index, note=note)


def _cut(
    disk: Disk, rng: random.Random, kinds: tuple[Kind, ...]
) -> Iterator[tuple[str, dict[str, bytes], list[str], bytes]]:
    parts = (0.0, 1.0, -1.0) if disk.waits else (1.0,)
    for part in parts:
        names = disk.kept_names(part, rng)
        waiting = any(node.pending for node in names.values())
        for kind in kinds if waiting else kinds[:1]:
            yield (kind, *_lay_out(names, kind, rng, kinds))
        if sum(bool(node.pending) for node in names.values()) > 1:
            for _ in range(MIXES):
                yield ("mixed", *_lay_out(names, None, rng, kinds))


def _lay_out(
    names: Names, kind: Kind | None, rng: random.Random, kinds: tuple[Kind, ...]
) -> tuple[dict[str, bytes], list[str], bytes]:
    files: dict[str, bytes] = {}
    folders, whole = [], hashlib.blake2b(digest_size=16)
    fates = (kind,) if kind else kinds
    for name in sorted(names):
        node = names[name]
        if node.folder:
            folders.append(name)
            whole.update(name.encode() + b"/")
            continue
        files[name], digest = node.image(rng.choice(fates), rng)
        whole.update(name.encode() + b"\0" + digest)
    for name in [name for name in files if name.endswith(".db") and rng.random() < STALE]:
        files[f"{name}-shm"] = rng.randbytes(STALE_BYTES)
        whole.update(files[f"{name}-shm"])
    return files, folders, whole.digest()
