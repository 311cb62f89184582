"""The tools host at work: takes calls from the kernel, runs them, several at once, and answers each exactly once."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import frame, receive_frame
from runtime.abi.errors import ToolFailed
from runtime.tools.failure import describe
from runtime.tools.loading import Function
from runtime.tools.protocol import (
    THREADS,
    Abandon,
    FromHost,
    FromKernel,
    Invoke,
    Load,
    Ping,
    Pong,
    Raised,
    Ready,
    Returned,
)
from runtime.tools.values import packed


class Line:
    """The socket to the kernel; any thread may send, one reads."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lock = threading.Lock()
        self._decoder = msgspec.msgpack.Decoder(FromKernel)

    def send(self, message: FromHost | msgspec.Struct) -> None:
        """Send one message; without a kernel there is nothing left to do."""
        data = frame(msgspec.msgpack.encode(message))
        try:
            with self._lock:
                self._socket.sendall(data)
        except OSError:
            leave(0)

    def receive(self, kind: type[msgspec.Struct] | None = None) -> Any:
        """The next message, of that kind where one is named; without a kernel there is nothing left to do."""
        try:
            payload = receive_frame(self._socket)
        except (OSError, FrameInvalid):
            payload = None
        if payload is None:
            leave(0)
        try:
            return msgspec.msgpack.decode(payload, type=kind) if kind else self._decoder.decode(payload)
        except msgspec.MsgspecError as error:
            print(f"the kernel sent what can't be read: {error}", file=sys.stderr)
            leave(1)


def leave(code: int) -> NoReturn:
    """End the process at once: a tool's thread must not keep alive what has no kernel."""
    os._exit(code)


class Host:
    """Plain functions run on threads, which also read and answer; async ones on the main thread's loop.

    The threads take turns at reading: who reads a call runs it, and the next one reads on. So a call passes from no
    thread to another, and never waits for a loop that an async tool blocks. There is one thread more than may run
    calls: when all others do, it reads on and queues what can't begin.
    """

    def __init__(self, line: Line, functions: dict[tuple[str, str], Function], *, folder: Path) -> None:
        self._line = line
        self._functions = functions
        self._async = {name for name, function in functions.items() if inspect.iscoroutinefunction(function)}
        self._folder = folder
        self._turn = threading.Lock()
        self._running = 0
        self._queue: dict[int, Invoke] = {}
        self._counts = threading.Lock()
        """Guards the two above."""
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self, ready: Ready) -> None:
        """Say so and serve until SIGTERM, so that exit functions run; a kernel that is gone ends the process."""
        self._loop = asyncio.get_running_loop()
        terminated = asyncio.Event()
        self._loop.add_signal_handler(signal.SIGTERM, terminated.set)
        for number in range(THREADS + 1):
            threading.Thread(target=self._work, name=f"tool-{number}", daemon=True).start()
        self._line.send(ready)
        await terminated.wait()

    # -- the threads -------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._turn:
                invoke = self._next()
            while invoke is not None:
                self._line.send(self._answer(invoke))
                invoke = self._ended()

    def _next(self) -> Invoke | None:
        """Read until there is a call for this thread to run, and count it."""
        while True:
            message = self._line.receive()
            match message:
                case Invoke():
                    if (message.module, message.member) in self._async:
                        self._loop.call_soon_threadsafe(self._start, message)
                    elif self._may_begin(message):
                        return message
                case Abandon():
                    self._abandon(message.call)
                case Ping():
                    self._loop.call_soon_threadsafe(self._line.send, Pong(message.number))
                case Load():
                    leave(1)  # the kernel speaks another protocol

    def _may_begin(self, invoke: Invoke) -> bool:
        """Whether a thread is free for it; else it waits for one."""
        with self._counts:
            free = self._running < THREADS
            if free:
                self._running += 1
            else:
                self._queue[invoke.call] = invoke
        return free

    def _ended(self) -> Invoke | None:
        """A call has ended: the one that has waited longest is next, if any does."""
        with self._counts:
            if self._queue:
                return self._queue.pop(next(iter(self._queue)))
            self._running -= 1
        return None

    def _abandon(self, call: int) -> None:
        with self._counts:
            waited = self._queue.pop(call, None)
        if waited is not None:
            self._line.send(Raised(call, "it was abandoned before it began"))
        self._loop.call_soon_threadsafe(self._cancel, call)

    def _answer(self, invoke: Invoke) -> Returned | Raised:
        function = self._functions.get((invoke.module, invoke.member))
        if function is None:
            return Raised(invoke.call, f"there is no tool {invoke.module}.{invoke.member}")
        try:
            return self._returned(invoke, function(*invoke.args, **invoke.kwargs))
        except BaseException as error:  # noqa: BLE001 - sys.exit too: a tool ends its own call, not the host
            return self._raised(invoke, error)

    # -- the loop's thread -------------------------------------------------------------------------

    def _start(self, invoke: Invoke) -> None:
        self._tasks[invoke.call] = self._loop.create_task(self._await(invoke))

    def _cancel(self, call: int) -> None:
        if task := self._tasks.get(call):
            task.cancel()

    async def _await(self, invoke: Invoke) -> None:
        function = self._functions[invoke.module, invoke.member]
        try:
            answer = self._returned(invoke, await function(*invoke.args, **invoke.kwargs))
        except BaseException as error:  # noqa: BLE001 - as above; a cancelled call is answered too
            answer = self._raised(invoke, error)
        finally:
            del self._tasks[invoke.call]
        self._line.send(answer)

    # -- answers -----------------------------------------------------------------------------------

    def _returned(self, invoke: Invoke, value: Any) -> Returned | Raised:
        try:
            return Returned(invoke.call, packed(value))
        except ToolFailed as error:
            return Raised(invoke.call, f"{error.message}. {error.hint}" if error.hint else error.message)

    def _raised(self, invoke: Invoke, error: BaseException) -> Raised:
        text = describe(error, self._folder)
        if isinstance(error, AxonError):
            text = f"{error.code}: {error.message}"
        return Raised(invoke.call, text)
