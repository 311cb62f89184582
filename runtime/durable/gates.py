"""The gates before a durable database: which SQLite, and which file system, can keep the promise."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from runtime.abi.errors import SqliteUnsupported, StorageUnsupported

FIRST_SAFE_SQLITE = (3, 51, 3)
"""Earlier versions may corrupt a database when the write-ahead log is reset."""
NETWORK_FILE_SYSTEMS = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "afs", "ceph", "glusterfs", "fuse.sshfs", "fuse.glusterfs")
)
UNFIT_FILE_SYSTEMS = NETWORK_FILE_SYSTEMS | {"tmpfs", "ramfs", "overlay", "aufs", "vboxsf"}
"""They forget at a power cut, or don't carry SQLite's locks and shared memory."""


def check_sqlite(version: str | None = None) -> None:
    """Raise ``SqliteUnsupported`` when the library in use has the WAL-reset bug."""
    version = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < FIRST_SAFE_SQLITE:
        raise SqliteUnsupported(
            f"SQLite {version} can corrupt a log when its write-ahead log is reset; 3.51.3 is the first safe one",
            version=version,
        )


def check_file_system(folder: Path, *, volatile_data: bool = False) -> str:
    """Return the folder's file system; raise ``StorageUnsupported`` for an unfit one unless ``volatile_data``."""
    kind = file_system(folder)
    if kind in UNFIT_FILE_SYSTEMS and not volatile_data:
        raise StorageUnsupported(
            f"{folder} lies on {kind}, which can't keep what was acknowledged", folder=str(folder), file_system=kind
        )
    return kind


def file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds the folder, such as ``ext4``; ``unknown`` when nothing tells."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    by_path = ("", "unknown")
    for line in mounts.read_text().splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()[0]
        if fields[2] == number:
            return kind
        point = fields[4].replace("\\040", " ")  # btrfs shows one device and stats as another: go by path then
        if len(point) > len(by_path[0]) and folder.resolve().is_relative_to(point):
            by_path = (point, kind)
    return by_path[1]
