"""The kernel's end of a worker's socket: garbage ends that worker alone, and is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from capsule.frames import Hello, frame
from runtime.engines import protocol as p
from runtime.kernel.engines.link import WorkerLink

HELLO = frame(msgspec.msgpack.encode(Hello(protocol=p.WORKER_PROTOCOL)))


class Transport:
    def __init__(self) -> None:
        self.wrote = b""
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.wrote += data

    def abort(self) -> None:
        self.aborted = True


class Owner:
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.refusals: list[Any] = []

    def heard(self, message: Any) -> None:
        self.messages.append(message)

    def lost(self, link: Any) -> None:
        self.messages.append("lost")

    def refused(self, error: Any) -> None:
        self.refusals.append(error)


def connected() -> tuple[WorkerLink, Owner, Transport]:
    owner, transport = Owner(), Transport()
    link = WorkerLink(p.Order(role="main", type="generate", provider="scripted", model="default"), owner)
    link.connection_made(transport)  # type: ignore[arg-type]  # the two calls that are made of it
    return link, owner, transport


def test_messages_are_heard_in_their_order_however_they_are_cut():
    link, owner, _ = connected()
    stream = HELLO + b"".join(frame(msgspec.msgpack.encode(m)) for m in (p.Ready(9, 1), p.Piece(1, "a"), p.Done(1, {})))
    for byte in stream:
        link.data_received(bytes([byte]))
    assert owner.messages == [p.Ready(9, 1), p.Piece(1, "a"), p.Done(1, {})]


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xff\xff\xff",
        frame(b"nothing"),
        frame(msgspec.msgpack.encode(Hello(protocol="axon-engine/9"))),
        HELLO + frame(b"\xc1"),
        HELLO + frame(msgspec.msgpack.encode(["Ready", "many", 1])),
        HELLO + frame(msgspec.msgpack.encode(["Piece"])),
    ],
)
def test_garbage_is_refused_and_the_line_cut(sent):
    link, owner, transport = connected()
    link.data_received(sent)
    (error,) = owner.refusals
    assert error.code == "FRAME_INVALID"
    assert transport.aborted
    assert not owner.messages
