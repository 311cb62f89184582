"""File layers that tests put under the unmodified product: one records what SQLite does, one fails on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import apsw
import msgspec

Kind: TypeAlias = Literal["make", "write", "sync", "lose", "truncate", "delete", "rename", "note"]


class Operation(msgspec.Struct, frozen=True):
    """One thing SQLite asked of a file, or a note of the test's about what had been promised by then."""

    kind: Kind
    file: str = ""
    at: int = 0  # where a write begins, or the size after a truncate
    data: bytes = b""
    note: Any = None  # of a rename: the new name


class Recorder(apsw.VFS):
    """Passes everything on and keeps every write, sync and truncate, in order. ``close`` it when done."""

    def __init__(self, name: str) -> None:
        self.operations: list[Operation] = []
        self._lock = threading.Lock()
        super().__init__(name, base="")

    def record(self, operation: Operation) -> None:
        """Keep one operation. Any thread."""
        with self._lock:
            self.operations.append(operation)

    def note(self, what: object) -> None:
        """Keep a remark at this point of the order."""
        self.record(Operation("note", note=what))

    def close(self) -> None:
        """Take the layer away; nothing may have a file open through it."""
        self.unregister()

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file that is watched."""
        return _RecordedFile(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's name and arguments
        """Delete a file."""
        super().xDelete(name, syncdir)
        self.record(Operation("delete", _base_name(name)))


class _RecordedFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        self._recorder = recorder
        self._name = _base_name(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(data, offset)
        self._recorder.record(Operation("write", self._name, offset, bytes(data)))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        super().xSync(flags)
        self._recorder.record(Operation("sync", self._name))

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        super().xTruncate(size)
        self._recorder.record(Operation("truncate", self._name, size))


class Failing(apsw.VFS):
    """Asks ``decide(operation, file)`` before each write, sync and read: None, or the fault to show.

    Faults: ``eio`` (nothing is done), ``eio-after`` (done, but the caller hears an error), ``short`` (half of a
    write), ``full`` (no space).
    """

    def __init__(self, name: str, decide: Callable[[str, str], str | None]) -> None:
        self.decide = decide
        self.shown: list[tuple[str, str, str]] = []
        super().__init__(name, base="")

    def close(self) -> None:
        """Take the layer away; nothing may have a file open through it."""
        self.unregister()

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file that may fail."""
        return _FailingFile(self, name, flags)

    def fault(self, operation: str, file: str) -> str | None:
        """What to show now."""
        fault = self.decide(operation, file)
        if fault is not None:
            self.shown.append((operation, file, fault))
        return fault


class _FailingFile(apsw.VFSFile):
    def __init__(self, layer: Failing, name: Any, flags: list[int]) -> None:
        self._layer = layer
        self._name = _base_name(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        fault = self._layer.fault("write", self._name)
        if fault in (None, "eio-after"):
            super().xWrite(data, offset)
        elif fault == "short":
            super().xWrite(data[: len(data) // 2], offset)
        _raise(fault, apsw.SQLITE_IOERR_WRITE)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        fault = self._layer.fault("sync", self._name)
        if fault in (None, "eio-after"):
            super().xSync(flags)
        _raise(fault, apsw.SQLITE_IOERR_FSYNC)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        _raise(self._layer.fault("read", self._name), apsw.SQLITE_IOERR_READ)
        return super().xRead(amount, offset)


def _raise(fault: str | None, code: int) -> None:
    if fault is None:
        return
    error: Any = apsw.FullError("no space, on purpose") if fault == "full" else apsw.IOError("on purpose")
    error.extendedresult = apsw.SQLITE_FULL if fault == "full" else code
    raise error


def _base_name(name: Any) -> str:
    path = name.filename() if isinstance(name, apsw.URIFilename) else name
    return Path(path).name if path else ""


class Forgetful(apsw.VFS):
    """A page cache after failed syncs: what wasn't written counts as clean, is read back, and never gets to the disk.

    ``cut()`` is what a cut would leave now. ``decide(file)`` says whether this sync fails. ``evict`` is what
    ``posix_fadvise(DONTNEED)`` does: the files show the disk again, and what is still to be written.
    """

    def __init__(self, name: str, decide: Callable[[str], bool]) -> None:
        self.decide = decide
        self.disk: dict[str, bytearray] = {}
        self._waiting: dict[str, list[Operation]] = {}
        self._lock = threading.Lock()
        super().__init__(name, base="")

    def close(self) -> None:
        """Take the layer away; nothing may have a file open through it."""
        self.unregister()

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file that is remembered twice."""
        return _ForgetfulFile(self, name, flags)

    def wrote(self, operation: Operation) -> None:
        """A write or truncate is in the cache."""
        self._waiting.setdefault(operation.file, []).append(operation)

    def sync(self, file: str) -> None:
        """What waits is on the disk; or it isn't and the cache forgets that it should be."""
        waiting = self._waiting.pop(file, [])
        _raise("eio" if self.decide(file) else None, apsw.SQLITE_IOERR_FSYNC)
        with self._lock:
            for operation in waiting:
                apply(self.disk.setdefault(file, bytearray()), operation)

    def cut(self) -> dict[str, bytes]:
        """The files as the disk has them at one moment. Any thread."""
        with self._lock:
            return {name: bytes(image) for name, image in self.disk.items()}

    def evict(self, folder: Path) -> None:
        """Nobody may have the files open."""
        for path in folder.iterdir():
            if path.name in self.disk or path.name in self._waiting:
                image = bytearray(self.disk.get(path.name, b""))
                for operation in self._waiting.get(path.name, []):
                    apply(image, operation)
                path.write_bytes(image)


class _ForgetfulFile(apsw.VFSFile):
    def __init__(self, layer: Forgetful, name: Any, flags: list[int]) -> None:
        self._layer = layer
        self._name = _base_name(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(data, offset)
        self._layer.wrote(Operation("write", self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        super().xTruncate(size)
        self._layer.wrote(Operation("truncate", self._name, size))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._layer.sync(self._name)
        super().xSync(flags)


def apply(image: bytearray, operation: Operation) -> None:
    """Do to an image what was done to the file."""
    if operation.kind == "truncate":
        del image[operation.at :]
        image.extend(bytes(operation.at - len(image)))
        return
    end = operation.at + len(operation.data)
    if len(image) < end:
        image.extend(bytes(end - len(image)))
    image[operation.at : end] = operation.data
