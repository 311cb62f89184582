"""The kernel's end of one life of an engine worker: its messages, checked."""

from __future__ import annotations

import asyncio
import os
from typing import Protocol, cast

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import FrameSplitter, Hello, frame
from runtime.engines.protocol import WORKER_PROTOCOL, FromWorker, Load, Order
from runtime.kernel.engines.request import framed


class LinkEvents(Protocol):
    """What the worker's owner wants to hear."""

    def heard(self, message: FromWorker) -> None:
        """A message of the worker."""

    def lost(self, link: WorkerLink) -> None:
        """The connection has ended, and all that came over it was heard."""

    def refused(self, error: AxonError) -> None:
        """The worker broke the protocol."""


class WorkerLink(asyncio.Protocol):
    """One connection."""

    def __init__(self, order: Order, events: LinkEvents) -> None:
        self._order = order
        self._events = events
        self._splitter = FrameSplitter()
        self._decoder = msgspec.msgpack.Decoder(FromWorker)
        self._transport: asyncio.Transport | None = None
        self._greeted = self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello, and what to load."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports don't inherit from asyncio's
        self._transport.write(frame(msgspec.msgpack.encode(Hello(protocol=WORKER_PROTOCOL, pid=os.getpid()))))
        self.send(framed(Load(self._order)))

    def data_received(self, data: bytes) -> None:
        """Every message in its order; garbage ends the worker."""
        if self._refused:
            return  # it may still arrive, and was told of
        try:
            for payload in self._splitter.feed(data):
                self._take(payload)
        except Exception as error:  # noqa: BLE001 - whatever a worker's bytes can cause ends that worker alone
            self._refused = True
            self.close()
            refusal = error if isinstance(error, AxonError) else FrameInvalid(f"an engine worker sent {error!r}"[:500])
            self._events.refused(refusal)

    def _take(self, payload: bytes) -> None:
        if self._greeted:
            self._events.heard(self._decoder.decode(payload))
            return
        hello = msgspec.msgpack.decode(payload, type=Hello)
        if hello.protocol != WORKER_PROTOCOL:
            raise FrameInvalid(f"the worker speaks {hello.protocol!r}, not {WORKER_PROTOCOL!r}")
        self._greeted = True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's own signature)
        """The worker is gone, or we hung up."""
        self._transport = None
        self._events.lost(self)

    def send(self, message: bytes) -> None:
        """A framed message; nothing happens when the worker is gone: its end is told by ``lost``."""
        if self._transport:
            self._transport.write(message)

    def close(self) -> None:
        """Hang up."""
        if self._transport:
            self._transport.abort()
