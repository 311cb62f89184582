"""The kernel's end of one incarnation: its messages, checked, a few a turn of the loop."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import deque
from contextlib import suppress
from typing import Protocol, cast

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import FrameSplitter, Hello, frame
from capsule.protocol import CAPSULE_PROTOCOL, MAX_FROM_GUEST, FromGuest, ToGuest
from runtime.kernel.capsule.message import decoded

MESSAGES_A_TURN = 64
TURN_S = 0.005
"""A turn ends early when its messages took so long."""
RECEIVE_BYTES = 65_536
MAX_UNREAD_BYTES = 64 * 1024 * 1024


class LinkEvents(Protocol):
    """What the capsule wants to hear of an incarnation."""

    def heard(self, message: FromGuest) -> None:
        """A message of the guest; whatever it raises ends the incarnation."""

    def refused(self, error: AxonError) -> None:
        """The guest broke the protocol."""


class CapsuleLink(asyncio.Protocol):
    """One connection."""

    def __init__(self, events: LinkEvents) -> None:
        self._events = events
        self._splitter = FrameSplitter(MAX_FROM_GUEST)
        self._encoder = msgspec.msgpack.Encoder()
        self._transport: asyncio.Transport | None = None
        self._greeted = False
        self._unserved: deque[bytes] = deque()
        self._serving = self._paused = self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports don't inherit from asyncio's
        self._transport.set_write_buffer_limits(0)  # so that uvloop writes at once, not at the end of the turn
        self._transport.write(frame(self._encoder.encode(Hello(protocol=CAPSULE_PROTOCOL, pid=os.getpid()))))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's own signature)
        """The guest is gone or hung up; its process's end is what counts."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Every message in its order; garbage ends the incarnation."""
        if self._refused:
            return  # it may still arrive, and was told of
        try:
            self._unserved.extend(self._splitter.feed(data))
        except FrameInvalid as error:
            self._refuse(error)
        if not self._serving:
            self._serve()

    def _serve(self) -> None:
        """A guest that floods delays itself, not the sensors or a stop."""
        self._serving = False
        until = time.monotonic() + TURN_S
        for _ in range(min(len(self._unserved), MESSAGES_A_TURN)):
            try:
                self._take(self._unserved.popleft())
            except Exception as error:  # noqa: BLE001 - whatever a guest's bytes can cause ends that guest alone
                self._refuse(error)
                return
            if time.monotonic() > until:
                break
        if self._transport is None:
            return
        if self._unserved:
            if not self._paused:
                self._transport.pause_reading()
            self._paused = self._serving = True
            asyncio.get_running_loop().call_soon(self._serve)
        elif self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _take(self, payload: bytes) -> None:
        if self._greeted:
            self._events.heard(decoded(payload))
            return
        hello = msgspec.msgpack.decode(payload, type=Hello)
        if hello.protocol != CAPSULE_PROTOCOL:
            raise FrameInvalid(f"the guest speaks {hello.protocol[:100]!r}, not {CAPSULE_PROTOCOL!r}")
        self._greeted = True

    def _refuse(self, error: Exception) -> None:
        if self._refused:
            return
        self._refused = True
        self._unserved.clear()
        refusal = error if isinstance(error, AxonError) else FrameInvalid(f"the capsule's guest sent {error!r}"[:500])
        self.close()
        self._events.refused(refusal)

    def send(self, message: ToGuest) -> None:
        """Send a message; a guest that doesn't read what it is sent ends."""
        if self._transport is None:
            return
        self._transport.write(frame(self._encoder.encode(message)))
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._refuse(FrameInvalid("the capsule's guest doesn't read what it asked for"))

    def finish(self, sock: socket.socket) -> bool:
        """Its process has ended: hear what it said last. False when that broke off, so that something is unknown."""
        with suppress(OSError):  # nothing more is there, or the connection was closed before
            while not self._refused and (data := sock.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)):
                self.data_received(data)
        while self._unserved and not self._refused:
            self._serve()
        self.close()
        return not self._refused

    def close(self) -> None:
        """Hang up."""
        if self._transport:
            self._transport.abort()
