"""The process itself: its arguments, and who speaks to it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from capsule.frames import Hello, frame, receive_frame

LIMIT_S = 40


def start(folder: Path, sock: socket.socket) -> subprocess.Popen[str]:
    fd = sock.fileno()
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "runtime.tools", str(fd), str(folder)],
        pass_fds=[fd],
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("arguments", [[], ["x", "y"], ["-1", "y"], ["1"]])
def test_wrong_arguments_are_wrong_usage(arguments):
    ended = subprocess.run([sys.executable, "-P", "-m", "runtime.tools", *arguments], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "usage" in ended.stderr


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\xff" * 64,
        frame(b"\xc1"),
        frame(msgspec.msgpack.encode(Hello(protocol="axon-tools/99"))),
        frame(msgspec.msgpack.encode(Hello(protocol="axon-tools/1"))),
        frame(msgspec.msgpack.encode(Hello(protocol="axon-tools/1"))) + frame(msgspec.msgpack.encode(["Ping", 1])),
    ],
)
def test_it_ends_with_whoever_leaves_or_speaks_another_protocol(tmp_path, sent):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = start(tmp_path, theirs)
        theirs.close()
        ours.settimeout(LIMIT_S)
        assert receive_frame(ours)
        ours.sendall(sent)
        ours.shutdown(socket.SHUT_WR)
        _, words = process.communicate(timeout=LIMIT_S)
        assert process.returncode in (0, 1)
        assert "Traceback" not in words
