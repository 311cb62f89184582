"""Small durable files: after a cut a file holds its old bytes or its new ones, never a part.

The only place in the tree that writes such files by hand. Everything here blocks; on an event loop, use a thread.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".tmp"


def write_durable(path: Path, data: bytes) -> None:
    """Replace the file's content; returns when both the bytes and the name are on the disk. Raises ``OSError``."""
    with writing_durable(path) as file:
        file.write(data)


@contextmanager
def writing_durable(path: Path) -> Iterator[BinaryIO]:
    """The same for content that comes in pieces: it is there, whole, when the block has ended without an error."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), _mode(path))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    sync_folder(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove what cuts in the middle of a write left in a folder; nobody else may be writing there."""
    for path in folder.glob(f".*{TEMPORARY}"):
        path.unlink(missing_ok=True)


def sync_data(file: BinaryIO) -> None:
    """Put what was written of a long file on the disk now, so that the last sync is short for everybody else."""
    file.flush()
    os.fdatasync(file.fileno())


def _mode(path: Path) -> int:
    """A file that is replaced keeps its permissions."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        return 0o644


def remove_durable(path: Path) -> None:
    """Remove the file if it is there; returns when its absence is on the disk."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def rename_durable(source: Path, target: Path) -> None:
    """Give a file another name in the same folder; returns when the new name is on the disk."""
    os.replace(source, target)
    sync_folder(target.parent)


def make_folder(path: Path) -> None:
    """Make the folder and those above it that are missing; returns when all their names are on the disk."""
    missing = []
    folder = path.absolute()
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        sync_folder(new.parent)


def sync_folder(path: Path) -> None:
    """Put the names in a folder on the disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
