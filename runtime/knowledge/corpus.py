"""One tree of entries on the disk: read by any name, changed only by whoever may."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from capsule.errors import AxonError
from runtime.abi.errors import (
    KnowledgeClash,
    KnowledgeEscape,
    KnowledgeNotFound,
    KnowledgeTooLarge,
    KnowledgeUnreadable,
    KnowledgeUnwritable,
)
from runtime.abi.knowledge import MAX_ENTRY_BYTES
from runtime.durable.files import make_folder, remove_durable_in, remove_folder_in, write_durable_in
from runtime.durable.space import SPARE_BYTES, free_bytes
from runtime.knowledge.descent import Place, descend, has, kind_of
from runtime.knowledge.name import shown


class Corpus:
    """The entries below one folder, named from there; everything blocks."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, parts: Sequence[str], *, most: int | None = MAX_ENTRY_BYTES) -> bytes:
        """The bytes of an entry; ``most`` of them, else ``KnowledgeTooLarge``."""
        try:
            with descend(self.root, parts) as place:
                if place is not None and has(place.folder, place.last):
                    return _content(place, most)
        except AxonError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            pass  # removed, or changed into something else, while it was looked for
        except OSError as error:
            raise KnowledgeUnreadable(f"{_name(parts)} can't be read: {error.strerror}", name=_name(parts)) from error
        raise KnowledgeNotFound(f"there is no entry {_name(parts)}", name=_name(parts))

    def write(self, parts: Sequence[str], data: bytes) -> None:
        """Replace or make an entry; returns when it is on the disk. After a cut it is the old one or the new one."""
        if len(data) > MAX_ENTRY_BYTES:
            raise KnowledgeTooLarge(
                f"{_name(parts)} would have {len(data):,} bytes, more than {MAX_ENTRY_BYTES:,}", size_bytes=len(data)
            )
        try:
            make_folder(self.root)
            if free_bytes(self.root) - len(data) < SPARE_BYTES:
                raise KnowledgeUnwritable("what is left of the disk is kept for the log", name=_name(parts))
            with descend(self.root, parts, make=True) as place:
                assert place is not None
                if has(place.folder, place.last):
                    _check_replaceable(place)
                write_durable_in(place.folder, place.last, data)
        except AxonError:
            raise
        except OSError as error:
            raise _unchanged(error, parts) from error

    def remove(self, parts: Sequence[str]) -> bool:
        """Remove an entry and the folders that this leaves empty; False when there was none."""
        try:
            with descend(self.root, parts) as place:
                if place is None or not has(place.folder, place.last):
                    return False
                mode = kind_of(place.folder, place.last)
                if stat.S_ISDIR(mode):
                    return False  # a folder is no entry
                _must_be_file(mode, place)
                remove_durable_in(place.folder, place.last)
                _prune(place)
                return True
        except AxonError:
            raise
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unchanged(error, parts) from error


def _content(place: Place, most: int | None) -> bytes:
    """Opened without touching what it turns out to be, then read only if it is a file: a device may act on an open."""
    seen = os.open(place.last, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
    try:
        found = os.fstat(seen)
        if stat.S_ISLNK(found.st_mode):
            raise KnowledgeEscape(f"{_name(place.parts)} is a link", name=_name(place.parts))
        if stat.S_ISDIR(found.st_mode):
            raise FileNotFoundError
        _must_be_file(found.st_mode, place)
        with open(f"/proc/self/fd/{seen}", "rb") as file:
            data = file.read() if most is None else file.read(most + 1)
    finally:
        os.close(seen)
    if most is not None and len(data) > most:
        size = max(found.st_size, len(data))
        raise KnowledgeTooLarge(f"{_name(place.parts)} has {size:,} bytes, more than {most:,}", size_bytes=size)
    return data


def _check_replaceable(place: Place) -> None:
    mode = kind_of(place.folder, place.last)
    if stat.S_ISDIR(mode):
        raise KnowledgeClash(f"{_name(place.parts)} is a folder with entries, so it can't be one itself")
    _must_be_file(mode, place)


def _must_be_file(mode: int, place: Place) -> None:
    if not stat.S_ISREG(mode):
        raise KnowledgeUnreadable(f"{_name(place.parts)} is no ordinary file", name=_name(place.parts))


def _prune(place: Place) -> None:
    """Folders have no meaning of their own: without entries they would only stand in the way of a name."""
    for depth in range(len(place.parts) - 1, 0, -1):
        try:
            remove_folder_in(place.folders[depth - 1], place.parts[depth - 1])
        except OSError:
            return  # something else is in it


def _unchanged(error: OSError, parts: Sequence[str]) -> KnowledgeUnwritable:
    return KnowledgeUnwritable(f"{_name(parts)} wasn't changed: {error.strerror or error}", name=_name(parts))


def _name(parts: Sequence[str]) -> str:
    return shown("/".join(parts))
