"""A test's side of the disk that forgets: mount it, command it, take the power away and mount what is left."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "mounted.py"
LIMIT_S = 30.0


def why_no_fuse() -> str:
    """What a mount by FUSE lacks here, "" when nothing."""
    if shutil.which("fusermount3") is None:
        return "FUSE is missing: sudo apt install fuse3"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "FUSE can't be used: /dev/fuse isn't there, or isn't this user's"
    if importlib.util.find_spec("mfusepy") is None:
        return "mfusepy is missing: pip install 'axon-edge[dev]'"
    return ""


class Mount:
    """A mounted disk; ``lying`` ones say that they synced and didn't."""

    def __init__(self, point: Path, base: Path, *, lying: bool = False) -> None:
        self.point = point
        self._image = base / "disk.image"
        self._control = base / "disk.control"
        self._words = ["lying"] if lying else []
        self._process: subprocess.Popen[bytes] | None = None
        point.mkdir(parents=True, exist_ok=True)
        self.mount()

    def mount(self) -> None:
        """Mount what the image holds."""
        self._control.unlink(missing_ok=True)
        places = [str(self.point), str(self._control), str(self._image)]
        self._process = subprocess.Popen([sys.executable, str(SCRIPT), *places, *self._words])
        deadline = time.monotonic() + LIMIT_S
        while not os.path.ismount(self.point):
            assert self._process.poll() is None, "the file system ended"
            assert time.monotonic() < deadline, "the file system isn't mounted"
            time.sleep(0.02)

    def unmount(self) -> None:
        """Whoever still has something open there hears errors from now on."""
        if self._process is None:
            return
        subprocess.run(["fusermount3", "-uz", str(self.point)], check=False, stderr=subprocess.DEVNULL)
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(LIMIT_S)
        self._process = None

    def command(self, **asked: Any) -> dict[str, Any]:
        """Tell the disk something and hear its figures."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(LIMIT_S)
            line.connect(str(self._control))
            line.sendall(json.dumps(asked).encode() + b"\n")
            answer: dict[str, Any] = json.loads(line.makefile("rb").readline())
            return answer

    def fail(self, *on: str, **fault: Any) -> None:
        """From now on those operations fail."""
        self.command(faults=[{"on": on, **fault}])

    def heal(self) -> None:
        """No fault any more, and plenty of room."""
        self.command(faults=[], leave=None)

    def forget(self, cut: str, seed: int) -> None:
        """The power goes: what wasn't synced is forgotten, and every answer is an error."""
        self.command(forget=[cut, seed])

    def return_to_power(self) -> None:
        """After ``forget``, and when all programs are dead: mount what was left."""
        self.unmount()
        self.mount()
