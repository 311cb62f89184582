"""One request to an engine, from the moment the brain asks until its slot is free again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from runtime.abi.clock import mono_us
from runtime.abi.errors import EngineQueueFull
from runtime.engines.protocol import Close, Count, Generate, Open, Push, Reset, ToWorker, Transform

MAX_UNTAKEN = 64
Asking = Count | Generate | Open | Transform


class Request:
    """``answer`` resolves with the worker's; ``piece`` takes what comes before it."""

    def __init__(self, message: Asking, piece: Callable[[Any], None]) -> None:
        loop = asyncio.get_running_loop()
        self.message = message
        self.number = message.request
        self.needs_slot = not isinstance(message, Count)
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.asked_us = mono_us()
        self.began_us: int | None = None
        self.first_us: int | None = None
        self._piece = piece
        self._send: Callable[[ToWorker], None] | None = None
        self._held: list[ToWorker] = []
        self._untaken: deque[asyncio.Future[None]] = deque()

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for the answer."""
        return not self.answer.done()

    def begin(self, send: Callable[[ToWorker], None]) -> None:
        """A slot is free: the request goes out, and what was pushed meanwhile after it."""
        self.began_us = mono_us()
        self._send = send
        send(self.message)
        for message in self._held:
            send(message)
        self._held.clear()

    def take(self, value: Any) -> None:
        """A piece of the answer has come."""
        if self.first_us is None:
            self.first_us = mono_us()
        if self.wanted:
            self._piece(value)

    # -- a stream ----------------------------------------------------------------------------------

    def push(self, value: Any) -> asyncio.Future[None]:
        """Send a value into the stream; resolves when the engine has worked on it."""
        if len(self._untaken) >= MAX_UNTAKEN:
            raise EngineQueueFull(f"{MAX_UNTAKEN} values of this stream wait for the engine")
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._untaken.append(taken)
        self._post(Push(self.number, value))
        return taken

    def reset(self) -> None:
        """Forget what was pushed."""
        self._post(Reset(self.number))

    def close(self) -> None:
        """Nothing more is pushed."""
        self._post(Close(self.number))

    def took(self) -> None:
        """The engine has worked on the oldest value."""
        if self._untaken and not (taken := self._untaken.popleft()).done():
            taken.set_result(None)

    def _post(self, message: ToWorker) -> None:
        """In the order of the calls, whether the request has begun or not."""
        if self._send is None:
            self._held.append(message)
        else:
            self._send(message)

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
            taken = self._untaken.popleft()
            if taken.done():
                continue
            if error is None:
                taken.set_result(None)
            else:
                taken.set_exception(error)
                taken.exception()  # its caller may have gone
