"""The page socket: requests answered, garbage refused, damage told."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsule.frames import Hello, frame, receive_frame
from runtime.abi.entries import decode_page
from runtime.abi.link import PAGE_PROTOCOL, Page, PageRequest
from runtime.log.log import Log
from runtime.log.pages import PageService

FIELD = "cognet:stimulus:field"


class Peer:
    """The brain's side."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(30)

    def greet(self, protocol: str = PAGE_PROTOCOL) -> Hello | None:
        self.sock.sendall(frame(msgspec.msgpack.encode(Hello(protocol=protocol))))
        payload = receive_frame(self.sock)
        return None if payload is None else msgspec.msgpack.decode(payload, type=Hello)

    def page(self, request: object) -> Page:
        self.sock.sendall(frame(msgspec.msgpack.encode(request)))
        return msgspec.msgpack.decode(receive_frame(self.sock) or b"", type=Page)


@pytest.fixture
async def log(folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any]) -> AsyncIterator[Log]:
    opened = open_log(folder, window_entries=10)
    opened.start(asyncio.get_running_loop())
    for value in range(600):
        opened.admit(FIELD, reading(value))
    await asyncio.wait_for(opened.durable(600), 30)
    yield opened
    await opened.close(clean=True)


async def test_history_comes_in_pages_and_each_is_counted(log: Log) -> None:
    ours, theirs = socket.socketpair()
    served: list[int] = []
    log.on_page = lambda: served.append(1)
    thread = log.serve_pages(ours)

    def read() -> list[int]:
        peer, seqs, after = Peer(theirs), [], 0
        assert peer.greet() is not None
        while (page := peer.page(PageRequest(after, 1000))).count:
            seqs += [entry.seq for entry in decode_page(page.bodies, page.first_seq)]
            after = seqs[-1]
        theirs.close()
        return seqs

    assert await asyncio.to_thread(read) == list(range(1, 601))
    await asyncio.to_thread(thread.join, 30)
    assert len(served) == 4


@pytest.mark.parametrize("sent", [b"\xff" * 40, frame(b"\xc1"), frame(msgspec.msgpack.encode([1, "x"]))])
async def test_garbage_ends_the_connection_and_is_told(log: Log, sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    refused: list[str] = []
    log.on_page_refused = refused.append
    thread = log.serve_pages(ours)

    def speak() -> bytes:
        Peer(theirs).greet()
        theirs.sendall(sent)
        try:
            return theirs.recv(1)
        except ConnectionResetError:  # it left what it hadn't read
            return b""

    assert await asyncio.to_thread(speak) == b""
    await asyncio.to_thread(thread.join, 30)
    assert len(refused) == 1
    theirs.close()


async def test_another_protocol_is_cut_off(log: Log) -> None:
    ours, theirs = socket.socketpair()
    refused: list[str] = []
    log.on_page_refused = refused.append
    thread = log.serve_pages(ours)
    assert await asyncio.to_thread(Peer(theirs).greet, "axon-pages/9") is None
    await asyncio.to_thread(thread.join, 30)
    assert "axon-pages/9" in refused[0]
    theirs.close()


async def test_absurd_numbers_are_answered(log: Log) -> None:
    ours, theirs = socket.socketpair()
    log.serve_pages(ours)

    def ask() -> list[int]:
        peer = Peer(theirs)
        peer.greet()
        requests = [(-(2**63), 5, 10), (2**63 - 1, 2**63 - 1, 10), (0, -5, 10), (0, 10, -1), (590, 2**62, 2**62)]
        return [peer.page(request).count for request in requests]

    assert await asyncio.to_thread(ask) == [5, 0, 0, 1, 10]
    theirs.close()


@settings(deadline=None, max_examples=50)  # the machine may be busy
@given(st.binary(max_size=200))
def test_no_bytes_break_the_service(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    service = PageService(lambda after, upto, limit: Page(after + 1, 0), served=lambda: None, refused=lambda _: None)
    thread = threading.Thread(target=service.serve, args=(ours,))
    thread.start()
    with theirs, contextlib.suppress(OSError):  # it may have left already
        theirs.sendall(frame(msgspec.msgpack.encode(Hello(protocol=PAGE_PROTOCOL))) + data)
        theirs.shutdown(socket.SHUT_WR)
        thread.join(30)
    thread.join(30)
    assert not thread.is_alive()
