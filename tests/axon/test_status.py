"""The live view as the process that it is."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from axon.status import connect
from runtime.abi.errors import AgentNotRunning

WAIT_S = 30
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"


@pytest.fixture
def counting(kernel, summary):
    """A kernel that can be asked for its figures."""

    async def figures():
        return msgspec.to_builtins(summary())

    return kernel(summary=figures)


def start(agent: Path, **options) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "axon.status", str(agent)], stderr=subprocess.PIPE, **options)


def test_without_a_terminal_it_writes_plain_lines_and_ends_with_the_kernel(agent, counting):
    with start(agent, stdout=subprocess.PIPE) as view:
        first = view.stdout.readline().decode()
        counting.close()
        _, errors = view.communicate(timeout=WAIT_S)
    assert first.startswith("30.0 wakes/s | late p99 0.9 ms | ")
    assert "\x1b" not in first
    assert (view.returncode, errors) == (0, b"")


def test_on_a_terminal_it_draws_a_table(agent, counting):
    ours, theirs = pty.openpty()
    with start(agent, stdout=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}) as view:
        os.close(theirs)
        picture = b""
        while b"brain" not in picture:
            picture += os.read(ours, 4096)
        view.terminate()
        view.communicate(timeout=WAIT_S)
        picture += os.read(ours, 65536)
    os.close(ours)
    assert view.returncode == 0
    assert picture.rindex(SHOW_CURSOR) > picture.rindex(HIDE_CURSOR)
    assert b"microphone" in picture
    assert b"late p50" in picture


def test_a_kernel_that_never_comes_is_not_waited_for_for_ever(agent):
    with pytest.raises(AgentNotRunning):
        connect(agent, within_s=0.05)
