"""One run of the product with everything it wrote, and what it had promised at each moment."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from crash.promise import Found
from crash.truth import Truth
from runtime.durable.faults import Operation


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """``before`` lay on the disk when it began; ``boot(folder, thorough)`` boots on a state of it.

    ``settings`` are those of the log that differ from a kernel's. Without ``noise`` no block turns to garbage.
    """

    operations: list[Operation]
    boot: Callable[[Path, bool], Found]
    truth: Truth
    before: Mapping[str, bytes] = {}
    settings: Mapping[str, Any] = {}
    noise: bool = True


def read_tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder but SQLite's index."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


def lay_out(files: Mapping[str, bytes], folders: list[str], root: Path) -> None:
    """Put a state on the disk."""
    for name in folders:
        (root / name).mkdir(exist_ok=True)
    for name, content in files.items():
        (root / name).write_bytes(content)


Record = Callable[[Path, random.Random], Recording]
"""Runs the product in an empty folder, in one of its many ways."""
