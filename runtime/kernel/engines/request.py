"""One request to an engine, from the moment the brain asks until its slot is free again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from capsule.frames import frame
from runtime.abi.clock import mono_us
from runtime.abi.errors import EngineQueueFull
from runtime.engines.protocol import Close, Count, Generate, Open, Push, Reset, ToWorker, Transform

MAX_UNTAKEN = 64
MAX_UNTAKEN_BYTES = 8 * 1024 * 1024
Asking = Count | Generate | Open | Transform
_encoder = msgspec.msgpack.Encoder()


class Request:
    """``answer`` resolves with the worker's; ``piece`` takes what comes before it."""

    def __init__(self, message: Asking, piece: Callable[[Any], None]) -> None:
        loop = asyncio.get_running_loop()
        self.number = message.request
        self.needs_slot = not isinstance(message, Count)
        self.framed = framed(message)
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.asked_us = mono_us()
        self.began_us: int | None = None
        self.first_us: int | None = None
        self._piece = piece
        self._send: Callable[[bytes], None] | None = None
        self._held: list[bytes] = []
        self._untaken: deque[tuple[asyncio.Future[None], int]] = deque()
        self._is_reset = True
        self._is_closed = False

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for the answer."""
        return not self.answer.done()

    def begin(self, send: Callable[[bytes], None]) -> None:
        """A slot is free: the request goes out, and what was pushed meanwhile after it."""
        self.began_us = mono_us()
        self._send = send
        for waiting in (self.framed, *self._held):
            send(waiting)
        self.framed, self._held = b"", []

    def take(self, value: Any) -> None:
        """A piece of the answer has come."""
        if self.first_us is None:
            self.first_us = mono_us()
        if self.wanted:
            self._piece(value)

    # -- a stream ----------------------------------------------------------------------------------

    def push(self, value: Any) -> asyncio.Future[None]:
        """Send a value into the stream; resolves when the engine has worked on it."""
        pushed = framed(Push(self.number, value))
        waiting = sum(size for _, size in self._untaken)
        if len(self._untaken) >= MAX_UNTAKEN or (waiting and waiting + len(pushed) > MAX_UNTAKEN_BYTES):
            raise EngineQueueFull(f"{len(self._untaken)} values of this stream wait for the engine")
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._untaken.append((taken, len(pushed)))
        self._is_reset = False
        self._post(pushed)
        return taken

    def reset(self) -> None:
        """Forget what was pushed; a second time there is nothing to forget."""
        if not self._is_reset:
            self._is_reset = True
            self._post(framed(Reset(self.number)))

    def close(self) -> None:
        """Nothing more is pushed."""
        if not self._is_closed:
            self._is_closed = True
            self._post(framed(Close(self.number)))

    def took(self) -> None:
        """The engine has worked on the oldest value."""
        if self._untaken and not (taken := self._untaken.popleft()[0]).done():
            taken.set_result(None)

    def _post(self, waiting: bytes) -> None:
        """In the order of the calls, whether the request has begun or not."""
        if self._send is None:
            self._held.append(waiting)
        else:
            self._send(waiting)

    # -- its end -----------------------------------------------------------------------------------

    def done(self, value: Any) -> None:
        """The answer has come."""
        if self.wanted:
            self.answer.set_result(value)
        self._release(None)

    def failed(self, error: Exception) -> None:
        """There will be no answer."""
        if self.wanted:
            self.answer.set_exception(error)
        self._release(error)

    def _release(self, error: Exception | None) -> None:
        """Nobody waits in vain for a value that no engine will take."""
        while self._untaken:
            taken, _ = self._untaken.popleft()
            if taken.done():
                continue
            if error is None:
                taken.set_result(None)
            else:
                taken.set_exception(error)
                taken.exception()  # its caller may have gone


def framed(message: ToWorker) -> bytes:
    """A message as it goes over the socket."""
    return frame(_encoder.encode(message))
