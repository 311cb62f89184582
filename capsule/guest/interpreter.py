"""The interpreter: takes runs in their order, executes a lone block in the main thread and several in threads.

How a block is stopped: a lone one by SIGINT, which the kernel sends while it is running and which also ends sleeps,
locks and matching of patterns; one of several by an asynchronous exception in its thread. Both first cancel what is
awaited. The kernel repeats itself until the block has settled, so that whatever comes at a bad moment is let pass: a
signal acts only where code of a block is on the stack, never in our own and never after the block has ended. An import
isn't interrupted: half a module would poison the incarnation, which ends if it takes too long.
"""

from __future__ import annotations

import builtins
import contextvars
import importlib
import queue
import sys
import threading
from types import FrameType, ModuleType
from typing import Any

from capsule.guest import code
from capsule.guest.errors import Interrupted
from capsule.guest.running import Block
from capsule.guest.surroundings import Surroundings
from capsule.guest.threads import Thread, checkpoint, inherit_context, sleep_in_slices
from capsule.guest.wire import Wire
from capsule.protocol import Answer, Execute, Order, Scoped, Settled, Started, Stop, ToGuest
from capsule.result import RunResult
from capsule.scope import AxonScope

STACK_BYTES = 1024 * 1024
IDLE_S = 0.2
HITS = 3
"""A task that is running at so many signals in turn is what keeps the block from ending."""
AWAITING = "capsule.guest.awaiting"


class Interpreter:
    """One incarnation."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._main = ModuleType("__main__")  # of the blocks: what they define can be pickled
        self._globals = self._main.__dict__
        self._surroundings = Surroundings(self._signalled)
        self._loop: Any = None
        self._tools: Any = None
        self._is_warm = False
        self._work: queue.SimpleQueue[list[Order] | tuple[Block, RunResult]] = queue.SimpleQueue()
        self._lone: Block | None = None
        self._threads: dict[str, Thread] = {}
        self._doomed: set[str] = set()
        """Blocks that were stopped before they began."""
        self._lock = threading.Lock()

    def install(self) -> None:
        """Prepare the process; before the lock, since it imports and starts what it needs."""
        threading.stack_size(STACK_BYTES)
        sys.modules["__main__"] = self._main
        inherit_context()
        sleep_in_slices()
        self._surroundings.install()

    def take(self, message: ToGuest) -> None:
        """A message of the kernel's, on the thread that listens."""
        match message:
            case Execute(blocks):
                self._doomed.clear()
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
            work = self._next()
            if isinstance(work, tuple):
                self._settle(*work)
                continue
            self._surroundings.put_back()
            if len(work) == 1:
                self._run_alone(work[0])
            else:
                self._run_side_by_side(work)

    def _next(self) -> list[Order] | tuple[Block, RunResult]:
        """What to do next. What takes long to import is imported when there has been nothing to do for a while."""
        while not self._is_warm:
            try:
                return self._work.get(timeout=IDLE_S)
            except queue.Empty:
                importlib.import_module(AWAITING)
                self._is_warm = True
        return self._work.get()

    def _block(self, order: Order, globals_: dict[str, Any]) -> Block:
        globals_["__builtins__"] = builtins
        return Block(order, globals_, mend=self._surroundings.mend)

    # -- a lone block ------------------------------------------------------------------------------

    def _run_alone(self, order: Order) -> None:
        block = self._lone = self._block(order, self._globals)
        context = contextvars.copy_context()
        result: RunResult | None = None
        try:
            self._wire.send(Started(block.id))
            if block.id not in self._doomed:
                result = context.run(block.run, self._complete)
        except Interrupted:
            pass
        self._lone = None
        self._wire.send(Settled(block.id, result or block.stopped()))

    def _complete(self, coroutine: Any) -> None:
        """The loop of lone blocks goes on from one to the next."""
        self._loop = self._loop or _new_loop(lasting=True)
        self._loop.complete(coroutine)

    def _signalled(self, _: int, frame: FrameType | None) -> None:
        """SIGINT, on the main thread: the lone block ends, if this comes at a good moment."""
        block = self._lone
        if block is None or self._wire.is_sending_here:
            return
        if is_awaiting := self._loop is not None and self._loop.cancel():
            block.was_hit = True
        if not code.is_running(frame) or code.is_importing(frame):
            return
        block.hits += 1
        if is_awaiting and not self._loop.is_in_task and block.hits < HITS:
            return  # code of another task, which may be an earlier block's and have nothing to do with it
        block.was_hit = True
        raise Interrupted

    # -- several -----------------------------------------------------------------------------------

    def _run_side_by_side(self, orders: list[Order]) -> None:
        start = dict(self._globals)
        for order in orders:
            block = self._block(order, dict(start))
            threading.Thread(target=self._run_in_thread, args=(block,), daemon=True).start()

    def _run_in_thread(self, block: Block) -> None:
        thread = Thread(block)
        result: RunResult | None = None
        try:
            with self._lock:
                self._threads[block.id] = thread
            self._wire.send(Started(block.id))
            if block.id not in self._doomed:
                result = block.run(lambda coroutine: thread.complete(coroutine, _new_loop(lasting=False)))
        except Interrupted:
            pass
        while block.id in self._threads:
            try:
                with self._lock:
                    del self._threads[block.id]
                checkpoint()
            except Interrupted:
                continue  # thrown before; nothing is thrown from here on
        thread.close()
        self._work.put((block, result or block.stopped()))

    def _settle(self, block: Block, result: RunResult) -> None:
        """The last to settle wins the names."""
        if result.ok:
            self._globals.update(block.bindings.bound())
        self._wire.send(Settled(block.id, result))

    def _stop(self, block: str) -> None:
        with self._lock:
            if thread := self._threads.get(block):
                thread.stop()
            else:  # it hasn't begun, is the lone one, or has ended
                self._doomed.add(block)


def _new_loop(*, lasting: bool) -> Any:
    return importlib.import_module(AWAITING).Loop(lasting=lasting)
