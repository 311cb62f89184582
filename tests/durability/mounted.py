"""The disk that forgets, mounted by FUSE: ``python mounted.py MOUNT CONTROL IMAGE [lying]`` until it is unmounted.

It begins with what lies in the file IMAGE, if it exists. Commands come on the Unix socket CONTROL, one JSON object
each: ``faults`` (a list), ``leave`` (bytes of room, null: plenty), ``forget`` (a cut and its seed: what is left is
written to IMAGE, and from then on every answer is EIO), ``shown`` (how many operations met a fault).
"""

from __future__ import annotations

import errno
import os
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mfusepy
import msgspec
from disk import FILE, FOLDER, Disk, Fault, Node, number_of


class Mounted(mfusepy.Operations):
    """FUSE's calls as operations of the disk. Handles are numbers of nodes, which outlive their names."""

    use_ns = True

    def __init__(self, disk: Disk, image: Path) -> None:
        self.disk = disk
        self._image = image
        self._guard = threading.RLock()
        self._open: dict[int, Node] = {}

    # -- commands ----------------------------------------------------------------------------------

    def command(self, asked: dict[str, Any]) -> Any:
        with self._guard:
            if "faults" in asked:
                self.disk.faults = msgspec.convert(asked["faults"], list[Fault])
            if "leave" in asked:
                leave = asked["leave"]
                self.disk.quota_bytes = None if leave is None else self.disk.used_bytes + leave
            if "forget" in asked and not self.disk.gone:
                self._image.write_bytes(self.disk.cut(*asked["forget"]).image())
                self.disk.gone = True
            return {"shown": self.disk.shown, "used": self.disk.used_bytes}

    @contextmanager
    def _doing(
        self, operation: str, path: str, *, node: Node | None = None, data: bytes = b"", at: int = 0
    ) -> Iterator[Fault | None]:
        """One operation, after what the faults say about it."""
        with self._guard:
            fault = self.disk.fault(operation, path)
            if fault and fault.short and fault.error and node is not None:
                self.disk.write(node, data[: len(data) // 2], at)
            if fault and fault.forget and node is not None:
                node.fail_to_sync()
            if fault and fault.error:
                raise OSError(number_of(fault.error), path)
        if fault and fault.delay_s:
            time.sleep(fault.delay_s)
        with self._guard:
            if self.disk.gone:
                raise OSError(errno.EIO, path)
            yield fault

    def _node(self, path: str | None, handle: int | None) -> Node:
        if handle and handle in self._open:
            return self._open[handle]
        if path is None:
            raise OSError(errno.EBADF, "no such handle")
        return self.disk.find(path)

    # -- what FUSE asks ----------------------------------------------------------------------------

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        with self._doing("getattr", path or ""):
            node = self._node(path, fh)
            size = len(node.live)
            links = 2 if node.is_folder else 1
            return {
                "st_mode": node.mode,
                "st_ino": node.number,
                "st_nlink": links,
                "st_size": size,
                "st_blocks": (size + 511) // 512,
                "st_uid": os.getuid(),
                "st_gid": os.getgid(),
            }

    def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
        with self._doing("readdir", path):
            folder = self.disk.find(path)
            found = {".": folder, "..": folder, **folder.names}
            return [(name, {"st_mode": node.mode, "st_ino": node.number}, 0) for name, node in found.items()]

    def statfs(self, path: str) -> dict[str, int]:
        with self._doing("statfs", path):
            free = self.disk.free_bytes // 4096
            total = (self.disk.used_bytes + self.disk.free_bytes) // 4096
            facts = {"f_bsize": 4096, "f_frsize": 4096, "f_namemax": 255, "f_files": 1 << 20, "f_ffree": 1 << 19}
            return facts | {"f_blocks": total, "f_bfree": free, "f_bavail": free}

    def create(self, path: str, mode: int, flags: int = 0) -> int:
        with self._doing("create", path):
            return self._opened(self.disk.make(path, FILE & ~0o7777 | mode & 0o7777))

    def open(self, path: str, flags: int) -> int:
        writing = flags & (os.O_WRONLY | os.O_RDWR)
        with self._doing("open for writing" if writing else "open", path):
            return self._opened(self.disk.find(path))

    def _opened(self, node: Node) -> int:
        self._open[node.number] = node
        return node.number

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        with self._doing("read", path or ""):
            return bytes(self._node(path, fh).live[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        node = self._node(path, fh)
        with self._doing("write", path or "", node=node, data=data, at=offset) as fault:
            half = fault is not None and fault.short and len(data) > 1
            return self.disk.write(node, data[: len(data) // 2] if half else data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        with self._doing("write", path or ""):
            self.disk.resize(self._node(path, fh), length)

    def fallocate(self, path: str, mode: int, offset: int, length: int, fh: int) -> None:
        with self._doing("write", path or ""):
            node = self._node(path, fh)
            if offset + length > len(node.live):
                self.disk.resize(node, offset + length)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        node = self._node(path, fh)
        with self._doing("sync", path or "", node=node):
            self.disk.sync(node)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
        with self._doing("sync", path or "", node=None):
            self.disk.sync(self.disk.find(path))

    def mkdir(self, path: str, mode: int) -> None:
        with self._doing("create", path):
            self.disk.make(path, FOLDER & ~0o7777 | mode & 0o7777)

    def unlink(self, path: str) -> None:
        with self._doing("remove", path):
            self.disk.remove(path)

    def rmdir(self, path: str) -> None:
        self.unlink(path)

    def rename(self, old: str, new: str) -> None:
        with self._doing("rename", new):
            self.disk.rename(old, new)

    def chmod(self, path: str, mode: int) -> None:
        with self._doing("chmod", path):
            node = self.disk.find(path)
            node.mode = node.mode & ~0o7777 | mode & 0o7777

    def chown(self, path: str, uid: int, gid: int) -> None:
        pass  # one owner

    def utimens(self, path: str, times: object = None) -> None:
        pass  # no times: one that changed would make the kernel drop its cache, which is the product's business


class _Commands(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            answer = self.server.mounted.command(msgspec.json.decode(line))  # type: ignore[attr-defined]
            self.wfile.write(msgspec.json.encode(answer) + b"\n")


def main(mount: str, control: str, image: str, *words: str) -> None:
    kept, honest = Path(image), "lying" not in words
    disk = Disk.load(kept.read_bytes(), honest=honest) if kept.exists() else Disk(honest=honest)
    mounted = Mounted(disk, kept)
    server = socketserver.ThreadingUnixStreamServer(control, _Commands)
    server.daemon_threads = True
    server.mounted = mounted  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {"use_ino": True, "hard_remove": True, "kernel_cache": True}
    mfusepy.FUSE(mounted, mount, foreground=True, fsname="axon-forgetful", **options)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
