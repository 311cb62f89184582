"""The catalogue of one corpus: every entry below its folder, and what there is that can't be one."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from runtime.abi.knowledge import MAX_ENTRY_BYTES, MAX_NAME_BYTES, KnowledgeEntry
from runtime.knowledge.descent import open_folder, open_root
from runtime.knowledge.description import HEAD_BYTES, description_of
from runtime.knowledge.lookalikes import all_look_alikes
from runtime.knowledge.name import MAX_PARTS, part_fault

SETTLED_NS = 2_000_000_000
"""A file that changed less than this ago may change again without a trace in its times, so it is read again."""
Odd = Callable[[str, str], None]
"""Takes the name, as it lies on the disk, of what is no entry, and why."""


class _Known(msgspec.Struct, frozen=True, gc=False):
    """An entry, and the state of the file that it was read from."""

    state: tuple[int, ...]
    entry: KnowledgeEntry


class Catalogue:
    """Walks a corpus; remembers descriptions, so that a look at what didn't change opens no file."""

    def __init__(self, root: Path, *, prefix: str = "") -> None:
        self.root = root
        self._prefix = prefix
        self._known: dict[str, _Known] = {}

    def entries(self) -> list[KnowledgeEntry]:
        """Every entry, in no order. What vanishes meanwhile isn't in it."""
        known: dict[str, _Known] = {}
        found = []
        for name, folder, file in self._files():
            with suppress(FileNotFoundError):
                found.append(self._look(name, folder, file, known))
        self._known = known
        return found

    def odd(self, tell: Odd) -> None:
        """Tell of everything that isn't an entry though it lies here, and of entries that can't be read."""
        for name, folder, file in self._files(tell):
            with suppress(FileNotFoundError):
                if file.stat(follow_symlinks=False).st_size > MAX_ENTRY_BYTES:
                    tell(name, f"is larger than {MAX_ENTRY_BYTES:,} bytes: listed, but read only by its path")
                elif not os.access(file.name, os.R_OK, dir_fd=folder):
                    tell(name, "may not be read")

    def _files(self, tell: Odd | None = None) -> Iterator[tuple[str, int, os.DirEntry[str]]]:
        """Each file with a name: its name, the open folder that it lies in, and what the folder says of it."""
        try:
            root = open_root(self.root)
        except FileNotFoundError:
            return
        yield from self._walk(root, "", 1, tell or _nobody)

    def _walk(self, folder: int, prefix: str, depth: int, tell: Odd) -> Iterator[tuple[str, int, os.DirEntry[str]]]:
        """Everything below an open folder, which is closed in the end."""
        try:
            with os.scandir(folder) as listing:
                inside = [file for file in listing if not file.name.startswith(".")]
            if tell is not _nobody:
                for one, other in all_look_alikes(sorted(file.name for file in inside)):
                    tell(prefix + one, f"looks like {prefix}{other}")
            for file in inside:
                name = prefix + file.name
                if fault := _fault(file, name, depth):
                    tell(name, fault)
                elif file.is_file(follow_symlinks=False):
                    yield name, folder, file
                else:
                    yield from self._enter(folder, file.name, f"{name}/", depth + 1, tell)
        finally:
            os.close(folder)

    def _enter(
        self, folder: int, name: str, prefix: str, depth: int, tell: Odd
    ) -> Iterator[tuple[str, int, os.DirEntry[str]]]:
        try:
            inner = open_folder(folder, name)
        except OSError as error:
            tell(prefix, f"can't be looked into: {error.strerror}")
            return
        yield from self._walk(inner, prefix, depth, tell)

    def _look(self, name: str, folder: int, file: os.DirEntry[str], known: dict[str, _Known]) -> KnowledgeEntry:
        """One entry, read again only when the file isn't the one that was read before."""
        now = file.stat(follow_symlinks=False)
        state = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        before = self._known.get(name)
        if before is None or before.state != state:
            entry = KnowledgeEntry(
                name=self._prefix + name,
                description=_described(folder, file.name),
                size=now.st_size,
                path=f"{self.root}/{name}",
            )
            before = _Known(state, entry)
        if abs(time.time_ns() - now.st_ctime_ns) > SETTLED_NS:
            known[name] = before
        return before.entry


def _nobody(_: str, __: str) -> None:
    """Nobody wants to hear of what is odd."""


def _fault(file: os.DirEntry[str], name: str, depth: int) -> str:
    """Why this is neither an entry nor a folder of entries; "" when it is one."""
    if file.is_symlink():
        return "is a link, which isn't followed"
    if not file.is_file(follow_symlinks=False) and not file.is_dir(follow_symlinks=False):
        return "is no ordinary file"
    if fault := part_fault(file.name):
        return f"can't be a name: it {fault}"
    if depth > MAX_PARTS or len(name.encode()) > MAX_NAME_BYTES:
        return "lies too deep"
    return ""


def _described(folder: int, name: str) -> str:
    """The description of a file; "" when it can't be read: a catalogue tells what is there all the same."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        return description_of(os.read(file, HEAD_BYTES))
    except OSError:
        return ""
    finally:
        os.close(file)
