"""Whatever a hand-made client says on a socket of the kernel's, it is cut off, told once, and harms nobody else.

Four protocols have a kernel's end: the brain's, the capsule's, the tools host's and an engine worker's. The page
socket's and the commands' are in ``tests/runtime/log/test_pages.py`` and ``test_commands.py``.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.frames import Hello, frame
from capsule.protocol import CAPSULE_PROTOCOL
from runtime.abi.link import LINK_PROTOCOL
from runtime.engines.protocol import WORKER_PROTOCOL, Order
from runtime.kernel.brain_link import BrainLink
from runtime.kernel.capsule.link import CapsuleLink
from runtime.kernel.engines.link import WorkerLink
from runtime.kernel.tools.link import ToolsLink
from runtime.tools.protocol import TOOLS_PROTOCOL

pack = msgspec.msgpack.encode


class Transport:
    """What a link does to its connection."""

    def __init__(self) -> None:
        self.aborted = False

    def write(self, data: bytes) -> None:
        assert data

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0


class Listener:
    """Stands for whoever listens to a link: counts refusals, takes everything else as said."""

    def __init__(self) -> None:
        self.refusals: list[Any] = []
        self.heard_of: list[str] = []

    def refused(self, error: Any, *_: Any) -> None:
        self.refusals.append(error)

    brain_refused = refused

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: self.heard_of.append(name)


class EmptyLog:
    """What a brain's link asks of the log when it greets."""

    last_seq = 0

    def recent(self, after: int) -> list[Any]:
        assert after == 0
        return []

    def hand_over(self) -> None:
        """Nothing was admitted."""


def brain(events: Any) -> BrainLink:
    return BrainLink(log=EmptyLog(), verbs={}, welcome=lambda: Hello(protocol="welcome"), events=events)  # type: ignore[arg-type, return-value]  # stand-ins


def worker(events: Any) -> WorkerLink:
    return WorkerLink(Order(role="main", type="generate", provider="scripted", model="default"), events)


LINKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "brain": (brain, LINK_PROTOCOL),
    "capsule": (CapsuleLink, CAPSULE_PROTOCOL),
    "tools host": (lambda events: ToolsLink(skip={}, events=events), TOOLS_PROTOCOL),
    "engine worker": (worker, WORKER_PROTOCOL),
}
GARBAGE = {
    "a frame above every limit": b"\xff\xff\xff\xff",
    "no msgpack": frame(b"\xc1"),
    "an empty frame": frame(b""),
    "a number": frame(pack(7)),
    "text": frame(b"GET / HTTP/1.1\r\n\r\n"),
    "an unknown message": frame(pack(["Nothing", 1])),
    "a message of another direction": frame(pack(["Welcome"])),
    "too short a message": frame(pack(["Settled"])),
    "a tower": frame(b"\x91" * 100_000),
    "a tower inside a value": frame(b"\x93\xa5Piece\x01" + b"\x91" * 100_000),
    "a huge number": frame(b"\x92\xa4Pong\xcf" + b"\xff" * 8) + frame(b"\xc1"),
}


def connected(name: str) -> tuple[Any, Listener, Transport, bytes]:
    """A link, who listens to it, its connection, and the hello it wants."""
    make, protocol = LINKS[name]
    listener, transport = Listener(), Transport()
    link = make(listener)
    link.connection_made(transport)
    return link, listener, transport, frame(pack(Hello(protocol=protocol)))


def cut_off(listener: Listener, transport: Transport) -> bool:
    return transport.aborted and [error.code for error in listener.refusals] == ["FRAME_INVALID"]


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("kind", GARBAGE)
async def test_garbage_after_the_hello_is_cut_off_and_told_once(name: str, kind: str) -> None:
    link, listener, transport, hello = connected(name)
    link.data_received(hello + GARBAGE[kind])
    link.data_received(GARBAGE[kind])  # was under way
    assert cut_off(listener, transport), listener.refusals
    assert listener.heard_of == []


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("kind", GARBAGE)
async def test_garbage_instead_of_a_hello_is_cut_off_too(name: str, kind: str) -> None:
    link, listener, transport, _ = connected(name)
    link.data_received(GARBAGE[kind])
    assert cut_off(listener, transport), listener.refusals


@pytest.mark.parametrize("name", LINKS)
async def test_another_protocol_or_version_is_cut_off(name: str) -> None:
    link, listener, transport, _ = connected(name)
    link.data_received(frame(pack(Hello(protocol="axon-something/99"))))
    assert cut_off(listener, transport)


@pytest.mark.parametrize("name", LINKS)
async def test_half_a_frame_is_waited_for(name: str) -> None:
    link, listener, transport, hello = connected(name)
    link.data_received(hello + b"\x00\x00\x01\x00half")
    assert (listener.refusals, transport.aborted) == ([], False)


STARTED = frame(pack(["Started", "block-1"]))


@pytest.mark.parametrize(
    ("last_words", "heard", "known"),
    [
        (b"", 0, True),
        (STARTED, 1, True),
        (STARTED * 1000, 1000, True),
        (STARTED + b"\xff\xff\xff\xff", 0, False),
        (STARTED + GARBAGE["no msgpack"], 1, False),
        (STARTED + b"\x00\x00", 1, True),
    ],
)
async def test_what_a_guest_said_before_its_end_is_heard_or_known_to_be_lost(
    last_words: bytes, heard: int, known: bool
) -> None:
    """A block of which nobody knows whether it has begun must not be executed again."""
    link, listener, _, hello = connected("capsule")
    link.data_received(hello)
    ours, theirs = socket.socketpair()
    theirs.sendall(last_words)
    theirs.close()
    assert link.finish(ours) is known
    assert len(listener.heard_of) == heard
    ours.close()


@pytest.mark.parametrize("name", LINKS)
@given(st.lists(st.binary(max_size=64), max_size=5), st.booleans(), st.booleans())
def test_no_bytes_escape(name: str, pieces: list[bytes], greeted: bool, framed: bool) -> None:
    """Whatever comes, nothing is raised at the loop, and a refusal is told once and ends the connection."""

    async def feed() -> None:
        link, listener, transport, hello = connected(name)
        data = b"".join(frame(piece) if framed else piece for piece in pieces)
        link.data_received((hello if greeted else b"") + data)
        assert len(listener.refusals) <= 1
        assert transport.aborted == bool(listener.refusals)

    asyncio.run(feed())
