"""The worker's process at its socket: the protocol as written, hostile bytes, and an end with the kernel's."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from capsule.frames import Hello, frame, receive_frame
from runtime.abi.engines import Counts, GenerateOptions, Message
from runtime.engines import protocol as p

LIMIT_S = 30.0
SCRIPT = """
format = 1
[[rules]]
when = 'hang'
reply = "a b c"
pace = {first_ms = 600000}
[[rules]]
reply = "a b"
[[streams]]
when = '!'
output = "heard"
"""
decoder = msgspec.msgpack.Decoder(p.FromWorker)


class Peer:
    """A hand-made kernel."""

    def __init__(self, folder: Path) -> None:
        (folder / "s.toml").write_text(SCRIPT)
        self.folder = folder
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(LIMIT_S)
        argv = [sys.executable, "-P", "-m", "runtime.engines", str(theirs.fileno())]
        self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL)
        theirs.close()

    def send(self, message: Any) -> None:
        self.socket.sendall(frame(msgspec.msgpack.encode(message)))

    def hear(self) -> Any:
        payload = receive_frame(self.socket)
        assert payload is not None, "the worker hung up"
        return decoder.decode(payload)

    def greet(self) -> None:
        self.send(Hello(protocol=p.WORKER_PROTOCOL))
        hello = msgspec.msgpack.decode(receive_frame(self.socket) or b"", type=Hello)
        assert hello.protocol == p.WORKER_PROTOCOL

    def load(self, **changes: Any) -> Any:
        self.greet()
        given = {
            "role": "main",
            "type": "generate",
            "provider": "scripted",
            "model": "s.toml",
            "folder": str(self.folder),
        }
        self.send(p.Load(p.Order(**given | changes)))
        return self.hear()

    def ended(self) -> int:
        return self.process.wait(LIMIT_S)


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    made = Peer(tmp_path)
    yield made
    made.socket.close()
    made.process.kill()
    made.process.wait(LIMIT_S)


def generate(number: int, text: str) -> p.Generate:
    return p.Generate(number, [Message(role="user", content=text)], GenerateOptions())


def test_it_loads_and_answers(peer):
    assert peer.load(options={"context": 100, "slots": 2}) == p.Ready(100, 2, {"rules": 2})
    peer.send(generate(5, "hello"))
    assert [peer.hear() for _ in range(2)] == [p.Piece(5, "a"), p.Piece(5, " b")]
    done = peer.hear()
    assert msgspec.convert(done.value, Counts) == Counts(prompt_tokens=5, generated_tokens=2)


def test_it_ends_with_the_kernel(peer):
    peer.load()
    peer.send(generate(1, "hang"))
    peer.socket.close()
    assert peer.ended() == 0


def test_a_model_that_cannot_be_loaded_is_said_and_is_the_end(peer):
    failed = peer.load(model="missing.toml")
    assert isinstance(failed, p.LoadFailed)
    assert failed.error.code == "ENGINE_MODEL_INVALID"
    assert peer.ended() == 1


@pytest.mark.parametrize("before", [[], [generate(1, "hang")]], ids=["running", "waiting for the slot"])
def test_a_cancelled_request_ends_exactly_once(peer, before):
    peer.load(options={"slots": 1})
    for message in before:
        peer.send(message)
    peer.send(generate(7, "hang"))
    peer.send(p.Cancel(7))
    peer.send(p.Cancel(7))
    if before:
        peer.send(p.Cancel(1))
    ends = [peer.hear() for _ in range(1 + len(before))]
    assert {end.request for end in ends} == {7, *(message.request for message in before)}
    assert {end.error.code for end in ends} == {"CALL_CANCELLED"}
    peer.send(generate(8, "hello"))
    assert peer.hear() == p.Piece(8, "a")


def test_what_the_engine_cannot_do_fails_the_request_alone(peer):
    peer.load()
    peer.send(p.Push(3, "nothing is open"))
    peer.send(p.Cancel(99))
    peer.send(p.Count(4, [Message(role="user", content="a b")]))
    assert peer.hear() == p.Done(4, 6)


def test_a_stream_answers_each_push(peer):
    peer.load(type="stream")
    peer.send(p.Open(1))
    peer.send(p.Push(1, "hey"))
    assert peer.hear() == p.Took(1)
    peer.send(p.Push(1, "!"))
    assert [peer.hear(), peer.hear()] == [p.Piece(1, "heard"), p.Took(1)]
    peer.send(p.Close(1))
    assert peer.hear() == p.Done(1)


@pytest.mark.parametrize(
    "payload",
    [b"\xff\xff\xff\xff", frame(b"garbage"), frame(msgspec.msgpack.encode(["Nothing", 1])), b"\x00\x00"],
    ids=["oversize", "no message", "unknown message", "half a frame"],
)
def test_garbage_ends_it(peer, payload):
    peer.load()
    peer.socket.sendall(payload)
    peer.socket.shutdown(socket.SHUT_WR)
    assert peer.ended() == 1


def test_another_protocol_is_refused(peer):
    peer.send(Hello(protocol="axon-engine/2"))
    assert peer.ended() == 1


def test_without_a_socket_it_says_how_it_is_used():
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "runtime.engines"], capture_output=True, timeout=LIMIT_S, check=False
    )
    assert ended.returncode == 2
    assert b"usage" in ended.stderr
