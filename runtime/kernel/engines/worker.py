"""One role's worker as the kernel knows it: started when it is first asked, queued for, cancelled, started again."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.engines import EngineFacts
from runtime.abi.errors import CallCancelled, EngineFailed, EngineQueueFull, EngineUnavailable, from_wire
from runtime.abi.telemetry import Refused
from runtime.engines import protocol as p
from runtime.kernel.engines.link import WorkerLink
from runtime.kernel.engines.request import Request, framed
from runtime.kernel.engines.roles import Role
from runtime.kernel.process import Process, spawn
from runtime.kernel.supervisor import Row, Supervisor

MAX_WAITING = 64
MAX_WAITING_BYTES = 16 * 1024 * 1024


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a worker may take, in seconds: to load, to end a cancelled request, to end when it has hung up."""

    load_s: float = 300.0
    cancel_s: float = 30.0
    leave_s: float = 2.0


class Worker:
    """``facts`` are what the cognet may know of the role now; ``changed`` is called when they are others."""

    def __init__(
        self,
        role: Role,
        *,
        supervisor: Supervisor,
        cores: Sequence[int],
        tell: Callable[[str, msgspec.Struct], None],
        changed: Callable[[], None],
        patience: Patience | None = None,
    ) -> None:
        assert role.order
        self.role = role
        self.name = f"engine.{role.name}"
        self.facts: EngineFacts = role.facts
        self._order = role.order
        self._supervisor = supervisor
        self._cores = list(cores)
        self._tell = tell
        self._changed = changed
        self._patience = patience or Patience()
        self._started = False
        self._link: WorkerLink | None = None
        self._ready: p.Ready | None = None
        self._process: Process | None = None
        self._exit: int | None = None
        self._unloadable = ""
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: deque[Request] = deque()
        self._running: dict[int, Request] = {}

    async def ask(self, request: Request) -> Any:
        """The worker's answer, when the request's turn has come; cancelling this cancels it there.

        Raises ``EngineQueueFull``, ``EngineUnavailable``, ``EngineFailed`` and what the engine raises.
        """
        if self._unloadable:
            raise self._unavailable(self._unloadable)
        waiting = sum(len(other.framed) for other in self._waiting)
        if len(self._waiting) >= MAX_WAITING or (waiting and waiting + len(request.framed) > MAX_WAITING_BYTES):
            what = f"{len(self._waiting)} requests ({waiting} bytes) wait for {self.role.name!r} already"
            raise EngineQueueFull(what, role=self.role.name)
        self._waiting.append(request)
        self._need()
        self._dispatch()
        try:
            return await request.answer
        finally:
            if request.number in self._running:
                self._cancel(request)
            elif request in self._waiting:
                self._waiting.remove(request)
                request.failed(CallCancelled("the request was cancelled before its turn"))

    # -- the queue ---------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Send what may go now: in order, one request a slot; counting needs none."""
        if self._ready is None or self._link is None:
            return
        free = self._ready.slots - sum(request.needs_slot for request in self._running.values())
        for request in list(self._waiting):
            if request.needs_slot and free <= 0:
                continue
            free -= request.needs_slot
            self._waiting.remove(request)
            self._running[request.number] = request
            request.begin(self._link.send)

    def _cancel(self, request: Request) -> None:
        """Its slot is free when the worker says that it has ended; one that doesn't say so is ended."""
        if self._link is None:
            return
        self._link.send(framed(p.Cancel(request.number)))
        link = self._link
        asyncio.get_running_loop().call_later(self._patience.cancel_s, self._cancelled_late, link, request.number)

    def _cancelled_late(self, link: WorkerLink, number: int) -> None:
        if link is self._link and number in self._running:
            self._kill(f"a cancelled request didn't end in {self._patience.cancel_s:g} s")

    # -- what the worker says ----------------------------------------------------------------------

    def heard(self, message: p.FromWorker) -> None:
        """A message of the present life."""
        match message:
            case p.Ready():
                self._loaded(message)
            case p.LoadFailed(error):
                self._unloadable = from_wire(error).message
                self._fail_all(from_wire(error))
                self._state(self._unloadable)
            case p.Piece(number, value):
                if request := self._running.get(number):
                    request.take(value)
            case p.Took(number):
                if request := self._running.get(number):
                    request.took()
            case p.Done(number, value):
                if request := self._running.pop(number, None):
                    request.done(value)
                self._dispatch()
            case p.Failed(number, error):
                if request := self._running.pop(number, None):
                    request.failed(from_wire(error))
                self._dispatch()

    def _loaded(self, ready: p.Ready) -> None:
        self._cancel_timer()
        self._ready = ready
        self._unloadable = ""
        self._state("", context=ready.context, slots=ready.slots)
        self._dispatch()

    def refused(self, error: AxonError) -> None:
        """It broke the protocol."""
        self._tell("kernel:link:refused", Refused(code=error.code, channel=self.name, example=error.message[:500]))
        self._kill(error.message)

    # -- its lives ---------------------------------------------------------------------------------

    def _need(self) -> None:
        """Start the worker the first time it is asked; from then on the supervisor keeps it."""
        if not self._started:
            self._started = True
            self._supervisor.add(Row(name=self.name, start=self._start))

    def _start(self, ended: Callable[[int], None], said: Callable[[str], None]) -> Process:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        fd = theirs.fileno()
        try:
            argv = [sys.executable, "-P", "-m", "runtime.engines", str(fd)]
            popen, output = spawn(argv, cores=self._cores, fds=(fd,))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        if self._link is not None:  # the life before has ended, and its socket hasn't said so yet
            self._link.close()
            self._died()
        link = self._link = WorkerLink(self._order, self)
        self._exit = None
        connecting = asyncio.get_running_loop().create_task(_connect(link, ours))
        connecting.add_done_callback(lambda task: task.result())
        self._timer = asyncio.get_running_loop().call_later(self._patience.load_s, self._loads_late)

        def closed(code: int) -> None:
            self._exit = code
            if self._link is None:
                self._died()
            ended(code)

        self._process = Process(popen, ended=closed, said=said)
        if output is not None:
            self._process.listen(output)
        return self._process

    def lost(self, link: WorkerLink) -> None:
        """All that a life said was heard; why it ended, its exit says."""
        if link is not self._link:
            return
        self._link = None
        self._cancel_timer()
        if self._exit is not None:
            self._died()
        else:
            asyncio.get_running_loop().call_later(self._patience.leave_s, self._lingers, self._process)

    def _died(self) -> None:
        """Its requests have failed; those that hadn't begun wait for the next life, if it could load at all."""
        was_ready, self._ready = self._ready is not None, None
        reason = self._unloadable or f"its process {_how(self._exit)}"
        if not was_ready and not self._unloadable:
            self._unloadable = f"{reason} while it loaded {self._order.model}"
            self._fail_all(self._unavailable(self._unloadable))
        running, self._running = self._running, {}
        for request in running.values():
            request.failed(EngineFailed(f"the engine of {self.role.name!r}: {reason}", role=self.role.name))
        self._state(self._unloadable or f"{reason}; it is started again")

    def _fail_all(self, error: AxonError) -> None:
        """Nothing can be served by an engine that can't be loaded."""
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            request.failed(error)

    def _state(self, reason: str, **facts: Any) -> None:
        """What the cognet may know has changed, perhaps."""
        found = msgspec.structs.replace(self.facts, available=not reason, reason=reason, **facts)
        if found != self.facts:
            self.facts = found
            self._changed()

    def _unavailable(self, reason: str) -> EngineUnavailable:
        return EngineUnavailable(f"the engine of {self.role.name!r}: {reason}", role=self.role.name)

    # -- patience ----------------------------------------------------------------------------------

    def _loads_late(self) -> None:
        self._timer = None
        self._kill(f"it didn't load {self._order.model} in {self._patience.load_s:g} s")

    def _lingers(self, process: Process | None) -> None:
        if process is self._process and process is not None and process.alive:
            self._kill("it closed its link and didn't end")

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _kill(self, reason: str) -> None:
        self._supervisor.kill(self.name, reason)


def _how(code: int | None) -> str:
    """How a process ended, in words."""
    if code is not None and code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with {code}"


async def _connect(link: WorkerLink, sock: socket.socket) -> None:
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=sock)
