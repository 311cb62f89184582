"""Where a running agent's sockets lie, and ``data/run.json``, by which its commands find them."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import msgspec

from runtime.abi.errors import StorageUnsupported
from runtime.abi.observe import RunFile
from runtime.durable.files import remove_durable, write_durable

RUN_FILE = "run.json"


def socket_folder(data: Path) -> Path:
    """A folder of this user alone, short enough for a Unix socket's 108 bytes; made when it isn't there."""
    name = hashlib.sha256(str(data.resolve()).encode()).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and len(runtime) < 60 and os.access(runtime, os.W_OK):
        base = Path(runtime) / "axon"
    else:
        base = Path(f"/tmp/axon-{os.getuid()}")
    for folder in (base, base / name):
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_owner(folder)
    return base / name


def _check_owner(folder: Path) -> None:
    """Somebody else's folder, or one that others may write, could hold a socket that isn't ours."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise StorageUnsupported(
            f"{folder} isn't a folder of this user alone", hint=f"Remove it (rm -r {folder}) and start again."
        )


def write_run_file(data: Path, run: RunFile) -> None:
    """Tell the commands where to ask; blocking."""
    write_durable(data / RUN_FILE, msgspec.json.format(msgspec.json.encode(run)))


def remove_run_file(data: Path) -> None:
    """Nobody answers any more; blocking."""
    remove_durable(data / RUN_FILE)
