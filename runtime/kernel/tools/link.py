"""The kernel's end of one life of the tools host: calls out, answers in, and whether it is still alive."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from capsule.errors import FrameInvalid
from capsule.frames import FrameSplitter, Hello, frame
from runtime.abi.clock import mono_us
from runtime.abi.errors import ToolFailed, ToolUnavailable
from runtime.tools.protocol import (
    MAX_VALUE_BYTES,
    TOOLS_PROTOCOL,
    Abandon,
    FromHost,
    FromKernel,
    Invoke,
    Load,
    Loading,
    Ping,
    Pong,
    Raised,
    Ready,
    Returned,
)

MAX_CALLS = 256
MAX_UNREAD_BYTES = 32 * 1024 * 1024
ENDED = "the tools host ended"


class LinkEvents(Protocol):
    """What the host's supervisor in the kernel wants to hear."""

    def ready(self, message: Ready) -> None:
        """All modules were imported or refused."""

    def lost(self) -> None:
        """The connection has ended."""

    def refused(self, error: FrameInvalid) -> None:
        """The host broke the protocol."""


class Abandoned(NamedTuple):
    """A call that nobody waits for and that isn't answered yet; ``threaded`` ones hold a thread of the host."""

    since_us: int
    threaded: bool


class ToolsLink(asyncio.Protocol):
    """One connection. ``loading`` names the module that is being imported, until the host is ready."""

    def __init__(self, *, skip: Mapping[str, str], events: LinkEvents) -> None:
        self._skip = dict(skip)
        self._events = events
        self._splitter = FrameSplitter()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(FromHost)
        self._transport: asyncio.Transport | None = None
        self._greeted = self._refused = False
        self._last_call = 0
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self.abandoned: dict[int, Abandoned] = {}
        self.loading = ""
        self.loading_since_us = mono_us()
        self.lost_us: int | None = None
        self.is_ready = False
        self.ponged = 0
        """The number of the last ping that was answered."""

    # -- the connection ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello, and what not to import."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports don't inherit from asyncio's
        self._write(Hello(protocol=TOOLS_PROTOCOL, pid=os.getpid()))
        self._write(Load(self._skip))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's own signature)
        """The host is gone: nobody waits in vain."""
        self._transport = None
        self.lost_us = mono_us()
        self.is_ready = False
        self.abandoned.clear()
        calls, self._calls = self._calls, {}
        for future in calls.values():
            if not future.done():
                future.set_exception(ToolFailed(ENDED))
        self._events.lost()

    def data_received(self, data: bytes) -> None:
        """Every message in its order; garbage ends the host."""
        if self._refused:
            return  # it may still arrive, and was told of
        try:
            for payload in self._splitter.feed(data):
                self._take(payload)
        except (FrameInvalid, msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._refused = True
            self._events.refused(FrameInvalid(f"the tools host sent {error}"[:500]))
            self.close()

    def close(self) -> None:
        """End this connection."""
        if self._transport:
            self._transport.abort()

    def _take(self, payload: bytes) -> None:
        if not self._greeted:
            hello = msgspec.msgpack.decode(payload, type=Hello)
            if hello.protocol != TOOLS_PROTOCOL:
                raise FrameInvalid(f"{hello.protocol!r}, not {TOOLS_PROTOCOL!r}")
            self._greeted = True
            return
        message = self._decoder.decode(payload)
        match message:
            case Returned():
                self._answered(message.call, message.value, None)
            case Raised():
                self._answered(message.call, None, ToolFailed(message.message))
            case Pong():
                self.ponged = message.number
            case Loading():
                self.loading, self.loading_since_us = message.module, mono_us()
            case Ready():
                self.loading, self.is_ready = "", True
                self._events.ready(message)

    # -- calls -------------------------------------------------------------------------------------

    async def call(self, invoke: Invoke, *, threaded: bool) -> Any:
        """What the tool returned; ``ToolFailed`` when it raised or its host ended. Cancelled, it is abandoned there.

        ``invoke.call`` is numbered here; ``threaded`` says that it is a plain function.
        """
        if self._transport is None:
            raise ToolUnavailable("the tools host is being started again")
        if (
            len(self._calls) + len(self.abandoned) >= MAX_CALLS
            or self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES
        ):
            raise ToolFailed(f"{len(self._calls)} calls are waiting for the tools host already")
        number = self._last_call = self._last_call + 1
        self._transport.write(frame(self._encoded(msgspec.structs.replace(invoke, call=number))))
        future = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            return await future
        except asyncio.CancelledError:
            self._abandon(number, threaded=threaded)
            raise

    def _encoded(self, invoke: Invoke) -> bytes:
        try:
            encoded = self._encoder.encode(invoke)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ToolFailed(f"the arguments can't be carried: {error}") from error
        if len(encoded) > MAX_VALUE_BYTES:
            raise ToolFailed(f"the arguments take {len(encoded)} bytes, above {MAX_VALUE_BYTES}")
        return encoded

    def _abandon(self, number: int, *, threaded: bool) -> None:
        if self._calls.pop(number, None) is None or self._transport is None:
            return
        self.abandoned[number] = Abandoned(mono_us(), threaded)
        self._write(Abandon(number))

    def _answered(self, number: int, value: Any, error: ToolFailed | None) -> None:
        if self.abandoned.pop(number, None) is not None:
            return
        future = self._calls.pop(number, None)
        if future is None:
            raise FrameInvalid(f"an answer to call {number}, which nobody made")
        if future.done():
            return
        if error:
            future.set_exception(error)
        else:
            future.set_result(value)

    def ping(self, number: int) -> None:
        """Ask whether it is alive."""
        if self._transport:
            self._write(Ping(number))

    def _write(self, message: FromKernel | Hello) -> None:
        assert self._transport
        self._transport.write(frame(self._encoder.encode(message)))
