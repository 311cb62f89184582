"""One engine in a process of its own: takes requests from the kernel, serves each slot in a thread."""

from __future__ import annotations

import os
import queue
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import Hello, frame, receive_frame
from runtime.abi.errors import CallCancelled, EngineFailed, EngineRequestInvalid, to_wire
from runtime.engines import protocol as p
from runtime.engines.provider import Engine, Outlet, RequestCancelled, Session, provider


class Worker:
    """Loads what the kernel orders, then serves until the kernel hangs up."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = threading.Lock()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(p.ToWorker)
        self._outlets: dict[int, Outlet] = {}
        self._pushed: dict[int, queue.SimpleQueue[p.Push | p.Reset | p.Close | None]] = {}
        self._engine: Engine

    def run(self) -> int:
        """Serve; the exit status: 0 when the kernel hung up, 1 when the engine can't be loaded."""
        self._write(Hello(protocol=p.WORKER_PROTOCOL, pid=os.getpid()))
        hello = msgspec.msgpack.decode(receive_frame(self._socket) or b"", type=Hello)
        if hello.protocol != p.WORKER_PROTOCOL:
            raise FrameInvalid(f"the kernel speaks {hello.protocol!r}, not {p.WORKER_PROTOCOL!r}")
        if not self._load():
            return 1
        slots = ThreadPoolExecutor(self._engine.slots, thread_name_prefix="slot")
        counter = ThreadPoolExecutor(1, thread_name_prefix="count")
        while (payload := receive_frame(self._socket)) is not None:
            self._take(self._decoder.decode(payload), slots, counter)
        return 0

    def _load(self) -> bool:
        payload = receive_frame(self._socket)
        message = self._decoder.decode(payload or b"")
        if not isinstance(message, p.Load):
            raise FrameInvalid(f"the first message was {type(message).__name__}, not Load")
        order = message.order
        try:
            self._engine = provider(order.provider).load(order)
        except Exception as error:  # noqa: BLE001 - whatever keeps an engine from loading is told, and ends the worker
            self._write(p.LoadFailed(to_wire(_named(error, f"{order.model} can't be loaded"))))
            return False
        self._write(p.Ready(self._engine.context, self._engine.slots, self._engine.facts))
        return True

    # -- requests ----------------------------------------------------------------------------------

    def _take(self, message: p.ToWorker, slots: ThreadPoolExecutor, counter: ThreadPoolExecutor) -> None:
        match message:
            case p.Generate() | p.Transform() | p.Open():
                if isinstance(message, p.Open):
                    self._pushed[message.request] = queue.SimpleQueue()
                self._begin(message.request, slots, lambda outlet: self._serve(message, outlet))
            case p.Count():
                self._begin(message.request, counter, lambda _: self._of("generate").count(message.messages))
            case p.Push() | p.Reset() | p.Close():
                if message.request in self._pushed:
                    self._pushed[message.request].put(message)
            case p.Cancel():
                self._cancel(message.request)
            case p.Load():
                raise FrameInvalid("the kernel sent a second Load")

    def _begin(self, request: int, threads: ThreadPoolExecutor, work: Callable[[Outlet], Any]) -> None:
        outlet = Outlet(lambda value: self._write(p.Piece(request, value)))
        self._outlets[request] = outlet
        threads.submit(self._finish, request, work, outlet)

    def _finish(self, request: int, work: Callable[[Outlet], Any], outlet: Outlet) -> None:
        """Every request ends with exactly one message, whatever happens in the engine."""
        answer: p.Done | p.Failed
        try:
            outlet.check()
            answer = p.Done(request, work(outlet))
        except RequestCancelled:
            answer = p.Failed(request, to_wire(CallCancelled("the request was cancelled")))
        except BaseException as error:  # noqa: BLE001 - an engine's exception or exit ends its request, not the worker
            answer = p.Failed(request, to_wire(_named(error, "the engine failed")))
        self._outlets.pop(request, None)
        self._pushed.pop(request, None)
        self._answer(answer)

    def _answer(self, answer: p.Done | p.Failed) -> None:
        try:
            self._write(answer)
        except (TypeError, ValueError, OverflowError, FrameInvalid) as error:
            reason = EngineFailed(f"the engine's answer can't be carried: {error}")
            self._write(p.Failed(answer.request, to_wire(reason)))

    def _serve(self, message: p.Generate | p.Transform | p.Open, outlet: Outlet) -> Any:
        match message:
            case p.Generate():
                return self._of("generate").generate(message.messages, message.options, outlet)
            case p.Transform():
                return self._of("transform").transform(message.value, outlet)
            case p.Open():
                return self._stream(message.request, self._of("open").open(outlet), outlet)

    def _stream(self, request: int, session: Session, outlet: Outlet) -> None:
        """What is pushed, in its order, until it is closed."""
        pushed = self._pushed[request]
        while True:
            match pushed.get():
                case p.Push(_, value):
                    session.push(value)
                    self._write(p.Took(request))
                case p.Reset():
                    session.reset()
                case p.Close():
                    session.close()
                    return
            outlet.check()

    def _cancel(self, request: int) -> None:
        if outlet := self._outlets.get(request):
            outlet.cancel()
        if pushed := self._pushed.get(request):
            pushed.put(None)  # wakes the thread that waits there

    def _of(self, ability: str) -> Any:
        """The engine, if it can do that."""
        if not hasattr(self._engine, ability):
            raise EngineRequestInvalid(f"this engine can't {ability}")
        return self._engine

    def _write(self, message: p.FromWorker | Hello) -> None:
        encoded = frame(self._encoder.encode(message))
        with self._sending:
            self._socket.sendall(encoded)


def _named(error: BaseException, what: str) -> AxonError:
    """An exception of the engine's own as one of ours."""
    if isinstance(error, AxonError):
        return error
    return EngineFailed(f"{what}: {type(error).__name__}: {error}"[:2000])
