"""The framed-message protocol: a 4-byte big-endian length, then one msgpack value.

The first frame on a connection is a ``Hello`` that names the protocol and its version; a peer that
names another is cut off. The same frames serve brain, capsule, tools host, workers, bus and control.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator

import msgspec

from capsule.errors import FrameInvalid

LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 16 * 1024 * 1024


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first frame each way: ``protocol`` is a name with its version, such as ``axon-link/1``."""

    protocol: str
    pid: int = 0


def frame(payload: bytes) -> bytes:
    """Put the length before an encoded message; refuses one longer than ``MAX_FRAME_BYTES``."""
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameInvalid(f"a frame of {len(payload)} bytes exceeds {MAX_FRAME_BYTES}", size_bytes=len(payload))
    return LENGTH.pack(len(payload)) + payload


class FrameSplitter:
    """Cuts a stream of bytes into frames, for a connection that is fed piece by piece."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, piece: bytes) -> Iterable[bytes]:
        """Every payload that is complete now, in order; raises ``FrameInvalid`` at an oversize length."""
        rest = len(piece) - LENGTH.size
        if not self._buffer and 0 <= rest <= self._max_bytes and LENGTH.unpack_from(piece)[0] == rest:
            return (piece[LENGTH.size :],)  # mostly a message comes alone and whole
        return self._split(piece)

    def _split(self, piece: bytes) -> Iterator[bytes]:
        self._buffer += piece
        start, end = 0, len(self._buffer)
        try:
            while end - start >= LENGTH.size:
                (size,) = LENGTH.unpack_from(self._buffer, start)
                if size > self._max_bytes:
                    raise FrameInvalid(f"a frame of {size} bytes exceeds {self._max_bytes}", size_bytes=size)
                if end - start - LENGTH.size < size:
                    break
                start += LENGTH.size
                payload = bytes(memoryview(self._buffer)[start : start + size])
                start += size
                yield payload
        finally:
            del self._buffer[:start]


def receive_frame(sock: socket.socket, max_bytes: int = MAX_FRAME_BYTES) -> bytes | None:
    """Read one payload from a plain socket, blocking; None when the peer closed between frames."""
    head = _receive_exactly(sock, LENGTH.size)
    if head is None:
        return None
    (size,) = LENGTH.unpack(head)
    if size > max_bytes:
        raise FrameInvalid(f"a frame of {size} bytes exceeds {max_bytes}", size_bytes=size)
    payload = _receive_exactly(sock, size)
    if payload is None:
        raise FrameInvalid("the connection ended inside a frame")
    return bytes(payload)


def _receive_exactly(sock: socket.socket, size: int) -> bytearray | None:
    """Read ``size`` bytes; None when the peer closed before the first of them."""
    buffer = bytearray(size)
    view, done = memoryview(buffer), 0
    while done < size:
        count = sock.recv_into(view[done:])
        if count == 0:
            if done:
                raise FrameInvalid("the connection ended inside a frame")
            return None
        done += count
    return buffer
