"""The interpreter: takes runs in their order, executes a lone block in the main thread and several in threads.

How a block is stopped: a lone one by SIGINT, which the kernel sends while it is running and which also ends sleeps,
locks and matching of patterns; one of several by an asynchronous exception in its thread. Each is stopped at most once,
and never after it has ended: the kernel sends nothing for a block that has settled, and what it sent before is
handled here before the next block begins.
"""

from __future__ import annotations

import builtins
import contextvars
import ctypes
import importlib
import queue
import signal
import threading
import time
from typing import Any

from capsule.guest import output
from capsule.guest.errors import Interrupted, PolicyDenied, ToolFailed
from capsule.guest.running import Block
from capsule.guest.wire import Wire
from capsule.protocol import Answer, Execute, Order, Scoped, Settled, Started, Stop, ToGuest
from capsule.result import RunResult
from capsule.scope import AxonScope

STACK_BYTES = 1024 * 1024
SLICE_S = 0.05
"""How long a thread sleeps at once: an asynchronous exception waits for the end of a sleep."""


class Interpreter:
    """One incarnation."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._globals: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
        self._loop: Any = None
        self._tools: Any = None
        self._work: queue.SimpleQueue[list[Order] | tuple[Block, RunResult]] = queue.SimpleQueue()
        self._lone: Block | None = None
        self._threads: dict[str, tuple[int, list[Any]]] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Prepare the process; before the lock, since it imports and starts what it needs."""
        threading.stack_size(STACK_BYTES)
        output.install()
        _inherit_context()
        _sleep_in_slices()
        builtins.PolicyDenied = PolicyDenied  # type: ignore[attr-defined]  # names that every block has
        builtins.ToolFailed = ToolFailed  # type: ignore[attr-defined]  # the same
        signal.signal(signal.SIGINT, self._signalled)

    def take(self, message: ToGuest) -> None:
        """A message of the kernel's, on the thread that listens."""
        match message:
            case Execute(blocks):
                self._work.put(blocks)
            case Stop(block):
                self._stop(block)
            case Answer() if self._tools is not None:
                self._tools.answered(message)
            case Scoped(scope):
                self._scope_changed(scope)

    def _scope_changed(self, scope: AxonScope) -> None:
        """The machinery of stubs takes a while to import, which an agent without tools is spared."""
        if self._tools is None and (scope.modules or scope.unavailable):
            self._tools = importlib.import_module("capsule.guest.tools").install(self._wire.send)
        if self._tools is not None:
            self._tools.scope_changed(scope)

    def serve(self) -> None:
        """Execute for ever, on the main thread."""
        while True:
            try:
                work = self._work.get()
                if isinstance(work, tuple):
                    self._settle(*work)
                elif len(work) == 1:
                    self._run_alone(work[0])
                else:
                    self._run_side_by_side(work)
            except Interrupted:
                continue  # came between two lines; whom it was for has settled

    # -- a lone block ------------------------------------------------------------------------------

    def _run_alone(self, order: Order) -> None:
        block = Block(order, self._globals)
        self._wire.send(Started(block.id))
        context = contextvars.copy_context()
        try:
            self._lone = block
            result = context.run(block.run, self._complete)
            self._lone = None
        except Interrupted:
            result = block.stopped()
        self._wire.send(Settled(block.id, result))

    def _complete(self, coroutine: Any) -> None:
        """The loop of lone blocks goes on from one to the next."""
        self._loop = self._loop or _new_loop()
        self._loop.complete(coroutine)

    def _signalled(self, *_: Any) -> None:
        """SIGINT, on the main thread: ends the lone block, once."""
        if self._lone is not None:
            self._lone = None
            raise Interrupted

    # -- several -----------------------------------------------------------------------------------

    def _run_side_by_side(self, orders: list[Order]) -> None:
        start = dict(self._globals)
        for order in orders:
            block = Block(order, dict(start))
            threading.Thread(target=self._run_in_thread, args=(block,), daemon=True).start()

    def _run_in_thread(self, block: Block) -> None:
        loops: list[Any] = []

        def complete(coroutine: Any) -> None:
            loops.append(_new_loop())
            loops[0].complete(coroutine)

        result: RunResult | None = None
        try:
            with self._lock:
                self._threads[block.id] = threading.get_ident(), loops
            self._wire.send(Started(block.id))
            result = block.run(complete)
        except Interrupted:
            pass
        for _ in range(2):  # the one exception may also come here
            try:
                with self._lock:
                    self._threads.pop(block.id, None)
                for loop in loops:
                    loop.close()
                self._work.put((block, result or block.stopped()))
                break
            except Interrupted:
                continue

    def _settle(self, block: Block, result: RunResult) -> None:
        """The last to settle wins the names; a block that settled twice did so with one result."""
        if result.ok:
            self._globals.update(block.bindings.bound())
        self._wire.send(Settled(block.id, result))

    def _stop(self, block: str) -> None:
        with self._lock:
            found = self._threads.pop(block, None)
            if found is None:
                return  # it has ended, or is the lone one
            thread, loops = found
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Interrupted))
            for loop in loops:
                loop.stir()


def _new_loop() -> Any:
    return importlib.import_module("capsule.guest.awaiting").Loop()


def _inherit_context() -> None:
    """A thread belongs to the block that started it: its prints and its calls."""
    for name in ("_start_new_thread", "_start_joinable_thread"):
        original = getattr(threading, name, None)
        if original is None:
            continue

        def start(function: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            context = contextvars.copy_context()
            return _original(lambda *inner, **named: context.run(function, *inner, **named), *args, **kwargs)

        setattr(threading, name, start)


def _sleep_in_slices() -> None:
    sleep, main = time.sleep, threading.main_thread().ident

    def sliced(seconds: Any) -> None:
        if threading.get_ident() == main or not isinstance(seconds, int | float) or not seconds > SLICE_S:
            sleep(seconds)
            return
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            sleep(min(left, SLICE_S))

    sliced.__name__ = sliced.__qualname__ = "sleep"
    sliced.__doc__ = sleep.__doc__
    time.sleep = sliced
