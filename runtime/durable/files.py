"""Small durable files: after a cut a file holds its old bytes or its new ones, never a part.

The only place in the tree that writes such files by hand. Everything here blocks; on an event loop, use a thread.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".tmp"
BEGUN = ".axon-write-"
"""How the temporary files of ``write_durable_in`` begin: they stand among files that people name."""


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
        with suppress(FileNotFoundError):  # somebody removed the whole folder meanwhile
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


# -- in a folder that is held open, so that no link can lead elsewhere ---------------------------------------


def write_durable_in(folder: int, name: str, data: bytes) -> None:
    """``write_durable`` for a file of the open folder; a link of that name is replaced, never followed."""
    temporary = f"{BEGUN}{secrets.token_hex(8)}{TEMPORARY}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            _take_after(file.fileno(), folder, name, mode=0o644)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):  # somebody removed the whole folder meanwhile
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def make_folder_in(folder: int, name: str) -> None:
    """Make a folder in the open one; returns when its name is on the disk. One that is there is fine."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
        made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            _take_after(made, folder, name=".", mode=0o755)
        finally:
            os.close(made)
        os.fsync(folder)


def remove_durable_in(folder: int, name: str) -> None:
    """Remove a file of the open folder; returns when its absence is on the disk."""
    os.unlink(name, dir_fd=folder)
    os.fsync(folder)


def remove_folder_in(folder: int, name: str) -> None:
    """Remove an empty folder of the open one; ``OSError`` when it isn't empty."""
    os.rmdir(name, dir_fd=folder)
    os.fsync(folder)


def _take_after(made: int, folder: int, name: str, *, mode: int) -> None:
    """Keep the permissions of what is replaced, and let root's new files belong to whoever owns the place."""
    try:
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        mode = before.st_mode & 0o777 if stat.S_ISREG(before.st_mode) else mode
    except FileNotFoundError:
        before = os.fstat(folder)
    if os.geteuid() == 0:
        os.fchown(made, before.st_uid, before.st_gid)
    os.fchmod(made, mode)
