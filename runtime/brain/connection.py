"""The brain's end of the link: messages in their order, calls that wait for replies, telemetry in batches."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import MAX_FRAME_BYTES, FrameSplitter, Hello, frame
from runtime.abi.errors import BrainLost, CallInvalid, EntryTooLarge, from_wire
from runtime.abi.link import LINK_PROTOCOL, Call, Cancel, Entries, FromBrain, FromKernel, Part, Reply

TOLD_BATCH = 256
MAX_EVENT_BYTES = 32 * 1024
MAX_UNSENT_EVENTS = 8192
_Item = TypeVar("_Item")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FromKernel)
_hello_decoder = msgspec.msgpack.Decoder(Hello)


class Connection(asyncio.Protocol):
    """Sends what a turn of the loop produced as one write; gives every message but replies to ``receive``.

    ``lost`` resolves when the link has ended, with the reason. Only ``send`` and ``tell`` may be called
    from another thread.
    """

    def __init__(self, receive: Callable[[FromKernel], None]) -> None:
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._splitter = FrameSplitter()
        self._transport: asyncio.Transport | None = None
        self._greeted = False
        self._paused = False
        self._frames: deque[bytes] = deque()
        self._events: deque[msgspec.Raw] = deque()
        self._flushing = False
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._hearers: dict[int, Callable[[Any], None]] = {}
        self._last_call = 0
        self._dropped = 0
        self.lost: asyncio.Future[AxonError] = self._loop.create_future()

    # -- the transport's side ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports don't inherit from asyncio's
        self._transport.set_write_buffer_limits(0)  # so that uvloop writes at once, not at the end of the turn
        self._transport.write(frame(_encoder.encode(Hello(protocol=LINK_PROTOCOL, pid=os.getpid()))))

    def data_received(self, data: bytes) -> None:
        """Take every complete message; anything that isn't of the protocol ends the link."""
        try:
            for payload in self._splitter.feed(data):
                self._take(payload)
        except FrameInvalid as error:
            self._end(error)
        except msgspec.MsgspecError as error:
            self._end(FrameInvalid(f"the kernel sent a message that can't be read: {error}"))

    def _take(self, payload: bytes) -> None:
        if not self._greeted:
            hello = _hello_decoder.decode(payload)
            if hello.protocol != LINK_PROTOCOL:
                raise FrameInvalid(f"the kernel speaks {hello.protocol}, not {LINK_PROTOCOL}")
            self._greeted = True
            return
        message = _decoder.decode(payload)
        if isinstance(message, Reply):
            if message.rows:
                self._receive(Entries(message.rows))
            self._resolve(message)
        elif isinstance(message, Part):
            if hear := self._hearers.get(message.call):
                hear(message.value)
        else:
            self._receive(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """The kernel is gone, or we closed."""
        self._end(BrainLost(f"the kernel closed the link{f': {exc}' if exc else ''}"))

    def pause_writing(self) -> None:
        """The kernel reads too slowly: what is narrated is bounded until it reads again."""
        self._paused = True

    def resume_writing(self) -> None:
        """The kernel has caught up."""
        self._paused = False
        self._flush_soon()

    def _end(self, reason: AxonError) -> None:
        """Every waiter hears of it; the first reason stays."""
        if not self.lost.done():
            self.lost.set_result(reason)
        calls, self._calls = self._calls, {}
        for future in calls.values():
            if not future.done():
                future.set_exception(BrainLost(f"the link ended before the reply: {reason.message}"))
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # -- messages ----------------------------------------------------------------------------------

    def send(self, message: FromBrain) -> None:
        """Queue a message, as it is now; raises ``EntryTooLarge`` and ``CallInvalid`` for what no frame can carry."""
        self._frames.append(frame(_encode(message, MAX_FRAME_BYTES)))
        self._flush_soon()

    def tell(self, event: msgspec.Struct) -> None:
        """Queue an event of telemetry, as it is now; dropped and counted above ``MAX_UNSENT_EVENTS`` unsent ones."""
        encoded = _encode(event, MAX_EVENT_BYTES)
        if len(self._events) >= MAX_UNSENT_EVENTS:
            self._dropped += 1
            return
        self._events.append(msgspec.Raw(encoded))
        self._flush_soon()

    def take_dropped(self) -> int:
        """How many events were dropped since this was last asked; 0 while the kernel doesn't read."""
        if self._paused:
            return 0
        dropped, self._dropped = self._dropped, 0
        return dropped

    def call(
        self,
        verb: str,
        args: list[Any],
        *,
        wake_id: str | None,
        cursor: int | None,
        hear: Callable[[Any], None] | None = None,
    ) -> asyncio.Future[Any]:
        """Send a call; the future is its reply, and ``hear`` takes the parts that come before it.

        The kernel acts on it whether or not anybody still waits: only a call with a ``hear`` is cancelled
        there when its future is cancelled here.
        """
        if self.lost.done():
            raise BrainLost(f"kernel.{verb}: {self.lost.result().message}")
        number = self._last_call + 1
        call = Call(number, verb, args, wake_id, cursor)
        if self._calls or self._flushing or self._transport is None:
            self.send(call)
        else:  # a lone call doesn't wait for the end of the turn; those that follow it do
            self._transport.write(frame(_encode(call, MAX_FRAME_BYTES)))
        self._last_call = number
        future = self._calls[number] = self._loop.create_future()
        if hear is not None:
            self._hearers[number] = hear
            future.add_done_callback(lambda done: self._unheard(number, done))
        return future

    def _unheard(self, number: int, done: asyncio.Future[Any]) -> None:
        self._hearers.pop(number, None)
        if done.cancelled() and number in self._calls and not self.lost.done():
            self.send(Cancel(number))

    def _resolve(self, reply: Reply) -> None:
        future = self._calls.pop(reply.call, None)
        if future is None:
            raise FrameInvalid(f"a reply to call {reply.call}, which nobody made")
        if future.done():
            return  # its wake was interrupted; the kernel has done it all the same
        if reply.error is not None:
            future.set_exception(from_wire(reply.error))
        else:
            future.set_result(reply.value)

    def _flush_soon(self) -> None:
        if self._flushing:
            return
        self._flushing = True
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self.flush)
        else:
            self._loop.call_soon_threadsafe(self.flush)

    def flush(self) -> None:
        """Write all that is queued; telemetry waits while the kernel doesn't read."""
        self._flushing = False
        frames = _taken(self._frames, len(self._frames))
        while self._events and not self._paused:
            frames.append(frame(_encoder.encode(("Told", _taken(self._events, TOLD_BATCH)))))
        if frames and self._transport is not None:
            self._transport.write(b"".join(frames))

    def close(self) -> None:
        """Write what is queued, then close; ``lost`` resolves when that is done."""
        self.flush()
        if self._transport is not None:
            self._transport.close()


def _taken(queue: deque[_Item], most: int) -> list[_Item]:
    """The oldest of a queue that other threads may append to."""
    return [queue.popleft() for _ in range(min(most, len(queue)))]


def _encode(message: msgspec.Struct, limit: int) -> bytes:
    try:
        encoded = _encoder.encode(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CallInvalid(
            f"this can't be said to the kernel: {error}",
            hint="Use plain values: dict, list, str, int, float, bool, None, bytes.",
        ) from error
    if len(encoded) > limit:
        raise EntryTooLarge(f"a message of {len(encoded)} bytes, above {limit}", size_bytes=len(encoded))
    return encoded
