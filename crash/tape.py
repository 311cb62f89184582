"""The record of everything that is done to the files below one folder, in its order.

SQLite's work comes through a file layer that is the default while the tape runs, everybody else's through ``os``. The
product is the one that ships: nothing in it knows of the tape. File names are relative to the folder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from runtime.durable.faults import Operation

JOURNALS = ("-wal", "-journal")
UNRECORDED = ("-shm",)
"""An index in memory that SQLite makes anew whenever nobody has the database open."""


class Tape(apsw.VFS):
    """``operations`` of the kinds make, write, truncate, sync, delete, rename and note; a sync of a folder is of its
    names. Use as ``with tape.running(): ...``."""

    def __init__(self, root: Path, name: str = "axon-tape") -> None:
        self.root = os.path.realpath(root)
        self.operations: list[Operation] = []
        self._name = name
        self._lock = threading.RLock()
        self._contents: dict[str, bytes] = {}  # of files that aren't SQLite's, as far as the record tells

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record from here to the end of the block; by then no database may be open."""
        self.base = apsw.vfs_names()[0]  # by its name: "" would be this one from now on
        super().__init__(self._name, base=self.base, makedefault=True)
        wrapped = _Calls(self)
        wrapped.put_in()
        try:
            yield
        finally:
            wrapped.take_out()
            self.unregister()

    def note(self, what: object) -> None:
        """Keep a remark at this point of the order, and what was written to plain files by now."""
        with self._lock:
            for name in list(self._contents):
                self.look(name)
            self.record(Operation("note", note=what))

    def record(self, operation: Operation) -> None:
        """Keep one operation. Any thread."""
        with self._lock:
            self.operations.append(operation)

    def inside(self, path: str) -> str | None:
        """The name of a path that is recorded; "" is the folder itself."""
        if path == self.root:
            return ""
        if not path.startswith(self.root + "/") or path.endswith(UNRECORDED):
            return None
        return path[len(self.root) + 1 :]

    # -- plain files ---------------------------------------------------------------------------------

    def opened(self, name: str, *, new: bool, emptied: bool) -> None:
        """Somebody opened a plain file in order to write it."""
        with self._lock:
            if new:
                self.record(Operation("make", name))
            elif emptied:
                self.record(Operation("truncate", name, 0))
            if new or emptied:
                self._contents[name] = b""
            elif name not in self._contents:
                self._contents[name] = _read(self._path(name)) or b""

    def look(self, name: str) -> None:
        """Record what was written to a plain file since the last look."""
        known, now = self._contents[name], _read(self._path(name))
        if now is None or now == known:
            return
        if not now.startswith(known):
            self.record(Operation("truncate", name, 0))
            known = b""
        self.record(Operation("write", name, len(known), now[len(known) :]))
        self._contents[name] = now

    def synced(self, name: str) -> None:
        """A file, or a folder's names, were synced."""
        with self._lock:
            if name in self._contents:
                self.look(name)
            self.record(Operation("sync", name))

    def renamed(self, old: str, new: str, do: Callable[[], None]) -> None:
        """Record what is in the file, rename it, record that."""
        with self._lock:
            if old in self._contents:
                self.look(old)
            do()
            self.record(Operation("rename", old, note=new))
            self._contents.pop(new, None)
            if old in self._contents:
                self._contents[new] = self._contents.pop(old)

    def deleted(self, name: str, do: Callable[[], None]) -> None:
        """Delete a file or an empty folder, record that."""
        with self._lock:
            do()
            self.record(Operation("delete", name))
            self._contents.pop(name, None)

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name)

    # -- SQLite's files ------------------------------------------------------------------------------

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file; one that is below the folder is watched."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        inside = self.inside(os.path.realpath(path)) if path else None
        if inside is None:
            return super().xOpen(name, flags)
        with self._lock:
            self._contents.pop(inside, None)  # from now on this layer sees all that is written
        return _File(self, name, flags, path=path, inside=inside)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's name and arguments
        """Delete a file, and sync its folder if SQLite wants that."""
        super().xDelete(name, syncdir)
        inside = self.inside(os.path.realpath(name))
        if inside is not None:
            self.record(Operation("delete", inside))
            if syncdir:
                self.record(Operation("sync", os.path.dirname(inside)))

    def fails(self, _name: str) -> bool:
        """Whether this sync is to fail; here none is."""
        return False


class _File(apsw.VFSFile):
    """SQLite syncs the folder with a journal's or a write-ahead log's first sync, which nobody asks this layer for."""

    def __init__(self, tape: Tape, name: Any, flags: list[int], *, path: str, inside: str) -> None:
        self._tape = tape
        self._inside = inside
        new = not os.path.exists(path)
        super().__init__(tape.base, name, flags)
        if new and os.path.exists(path):
            tape.record(Operation("make", inside))
        self._folder_waits = new and inside.endswith(JOURNALS)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(data, offset)
        self._tape.record(Operation("write", self._inside, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        super().xTruncate(size)
        self._tape.record(Operation("truncate", self._inside, size))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self._tape.fails(self._inside):
            error: Any = apsw.IOError("on purpose")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error
        super().xSync(flags)
        self._tape.record(Operation("sync", self._inside))
        if self._folder_waits:
            self._folder_waits = False
            self._tape.record(Operation("sync", os.path.dirname(self._inside)))


class _Calls:
    """The calls of ``os`` that change files, each passing everything on."""

    NAMES = ("open", "fsync", "fdatasync", "replace", "rename", "unlink", "remove", "mkdir", "rmdir")

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._real: dict[str, Any] = {name: getattr(os, name) for name in self.NAMES}

    def put_in(self) -> None:
        for name in self.NAMES:
            setattr(os, name, getattr(self, f"_{name}"))

    def take_out(self) -> None:
        for name, call in self._real.items():
            setattr(os, name, call)

    def _inside(self, path: Any, folder: int | None = None) -> str | None:
        """The tape's name of a path, of one in an open folder, or of an open file."""
        if isinstance(path, int):
            return self._tape.inside(os.readlink(f"/proc/self/fd/{path}"))
        above = os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}")
        head, last = os.path.split(os.path.join(above, os.fsdecode(path)))
        return self._tape.inside(os.path.join(os.path.realpath(head), last))

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        writing = flags & (os.O_WRONLY | os.O_RDWR)
        inside = self._inside(path, dir_fd) if writing else None
        if inside is None:
            return int(self._real["open"](path, flags, mode, dir_fd=dir_fd))
        new = not _there(path, dir_fd)
        handle = int(self._real["open"](path, flags, mode, dir_fd=dir_fd))
        self._tape.opened(inside, new=new, emptied=bool(flags & os.O_TRUNC))
        return handle

    def _fsync(self, handle: int) -> None:
        self._sync("fsync", handle)

    def _fdatasync(self, handle: int) -> None:
        self._sync("fdatasync", handle)

    def _sync(self, call: str, handle: int) -> None:
        inside = self._inside(handle)
        self._real[call](handle)
        if inside is not None:
            self._tape.synced(inside)

    def _replace(self, old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        self._move("replace", old, new, src_dir_fd, dst_dir_fd)

    def _rename(self, old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        self._move("rename", old, new, src_dir_fd, dst_dir_fd)

    def _move(self, call: str, old: Any, new: Any, source: int | None, target: int | None) -> None:
        def do() -> None:
            self._real[call](old, new, src_dir_fd=source, dst_dir_fd=target)

        before, after = self._inside(old, source), self._inside(new, target)
        if before is None or after is None:
            do()
        else:
            self._tape.renamed(before, after, do)

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._take_away("unlink", path, dir_fd)

    def _remove(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._take_away("remove", path, dir_fd)

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._take_away("rmdir", path, dir_fd)

    def _take_away(self, call: str, path: Any, folder: int | None) -> None:
        def do() -> None:
            self._real[call](path, dir_fd=folder)

        inside = self._inside(path, folder)
        if inside is None:
            do()
        else:
            self._tape.deleted(inside, do)

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._real["mkdir"](path, mode, dir_fd=dir_fd)
        inside = self._inside(path, dir_fd)
        if inside is not None:
            self._tape.record(Operation("make", inside, note="folder"))


def _there(path: Any, folder: int | None) -> bool:
    try:
        os.stat(path, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _read(path: str) -> bytes | None:
    """The content, None when the file is gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
