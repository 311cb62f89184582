"""Pages of older history over a socket of their own: the brain's one blocking call, with one page read ahead."""

from __future__ import annotations

import socket
import threading

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import Hello, frame, receive_frame
from runtime.abi.errors import BrainLost, from_wire
from runtime.abi.link import PAGE_ENTRIES, PAGE_PROTOCOL, Page, PageRequest

TIMEOUT_S = 30.0
_encoder = msgspec.msgpack.Encoder()
_page_decoder = msgspec.msgpack.Decoder(Page)
_hello_decoder = msgspec.msgpack.Decoder(Hello)


class Pages:
    """Asks the kernel for pages; any thread may, one at a time."""

    def __init__(self, sock: socket.socket, *, pid: int = 0) -> None:
        sock.settimeout(TIMEOUT_S)
        self._sock = sock
        self._pid = pid
        self._lock = threading.Lock()
        self._greeted = False
        self._ahead: PageRequest | None = None  # asked for and not received yet

    def read(self, after: int, upto: int, *, ahead: bool = False) -> Page:
        """The page that begins after that ``seq``; with ``ahead`` the next one is requested before returning.

        Raises ``BrainLost`` when the kernel is gone, and whatever error the kernel answers with.
        """
        with self._lock:
            try:
                return self._read(PageRequest(after, upto), ahead=ahead)
            except AxonError:
                raise  # some of them are OSErrors as well, and say already what happened
            except OSError as error:
                raise BrainLost(f"the kernel doesn't serve history any more: {error}") from error
            except msgspec.MsgspecError as error:
                raise FrameInvalid(f"the kernel sent a page that can't be read: {error}") from error

    def _read(self, request: PageRequest, *, ahead: bool) -> Page:
        self._greet()
        if self._ahead != request:
            self._drop_ahead()
            self._send(request)
        self._ahead = None
        page = _page_decoder.decode(self._receive())
        if page.error is not None:
            raise from_wire(page.error)
        last = page.first_seq + page.count - 1
        if ahead and page.count and last < request.upto:
            self._ahead = PageRequest(last, request.upto)
            self._send(self._ahead)
        return page

    def _greet(self) -> None:
        if self._greeted:
            return
        self._sock.sendall(frame(_encoder.encode(Hello(protocol=PAGE_PROTOCOL, pid=self._pid))))
        hello = _hello_decoder.decode(self._receive())
        if hello.protocol != PAGE_PROTOCOL:
            raise FrameInvalid(f"the kernel serves pages as {hello.protocol}, not {PAGE_PROTOCOL}")
        self._greeted = True

    def _drop_ahead(self) -> None:
        """Another reader went elsewhere; its page must leave the socket before ours comes."""
        if self._ahead is not None:
            self._receive()
            self._ahead = None

    def _send(self, request: PageRequest) -> None:
        self._sock.sendall(frame(_encoder.encode(request)))

    def _receive(self) -> bytes:
        payload = receive_frame(self._sock)
        if payload is None:
            raise BrainLost("the kernel closed the page socket")
        return payload

    def close(self) -> None:
        """Close the socket; a blocked read in another thread ends with ``BrainLost``."""
        self._sock.close()


__all__ = ["PAGE_ENTRIES", "Pages"]
