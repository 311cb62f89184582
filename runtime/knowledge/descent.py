"""The way from a corpus's folder down to an entry, one open folder after another: no link can lead it elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from runtime.abi.errors import KnowledgeClash, KnowledgeEscape
from runtime.durable.files import make_folder_in
from runtime.knowledge.lookalikes import find_look_alike
from runtime.knowledge.name import shown

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """Where one entry is or would be: the folders on the way, the innermost last, held open."""

    def __init__(self, folders: Sequence[int], parts: Sequence[str]) -> None:
        self.folders = folders
        self.parts = parts

    @property
    def folder(self) -> int:
        """The folder that the entry lies in."""
        return self.folders[-1]

    @property
    def last(self) -> str:
        """The entry's own name in it."""
        return self.parts[-1]


def open_root(root: Path) -> int:
    """A corpus's folder; ``FileNotFoundError`` when it isn't there, ``KnowledgeEscape`` when it is a link."""
    try:
        return os.open(root, _FOLDER)
    except NotADirectoryError as error:
        raise KnowledgeEscape(f"{root} is a link or a file, not a folder", name=root.name) from error


def open_folder(folder: int, name: str) -> int:
    """A folder in an open one; raises ``OSError`` for a link and for anything else that is no folder."""
    return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def descend(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[Place | None]:
    """The place of an entry; None when a folder on the way isn't there and ``make`` doesn't make it.

    Raises ``KnowledgeEscape`` at a link, or where something looks like the name and isn't it, and ``KnowledgeClash``
    where an entry stands in the way of a folder that is to be made.
    """
    with ExitStack() as closing:
        folders = [open_root(root)]
        closing.callback(os.close, folders[0])
        for depth, part in enumerate(parts[:-1]):
            if not has(folders[-1], part):
                if not make:
                    yield None
                    return
                make_folder_in(folders[-1], part)
            elif not _is_folder(folders[-1], parts[: depth + 1]):
                if make:
                    raise KnowledgeClash(f"{shown('/'.join(parts[: depth + 1]))} is an entry, so nothing lies below it")
                yield None
                return
            folders.append(open_folder(folders[-1], part))
            closing.callback(os.close, folders[-1])
        yield Place(folders, parts)


def has(folder: int, name: str) -> bool:
    """Whether the open folder has exactly that name; ``KnowledgeEscape`` when only a look-alike is there.

    By its list, not by asking for the name: a disk that knows no case would say yes to both.
    """
    names = os.listdir(folder)
    if name in names:
        return True
    if (other := find_look_alike(name, names)) is not None:
        raise KnowledgeEscape(f"{shown(name)} looks like {shown(other)}, which is there", name=shown(name))
    return False


def kind_of(folder: int, name: str) -> int:
    """The mode of what has that name, itself and not what it points to; ``KnowledgeEscape`` for a link."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        raise KnowledgeEscape(f"{shown(name)} is a link", name=shown(name))
    return mode


def _is_folder(folder: int, parts: Sequence[str]) -> bool:
    return stat.S_ISDIR(kind_of(folder, parts[-1]))
