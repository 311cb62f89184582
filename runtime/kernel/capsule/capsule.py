"""The capsule: one incarnation after another, the run it is given, and the deadlines that only the kernel can keep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import msgspec

from capsule.errors import AxonError, FrameInvalid, SandboxUnavailable
from capsule.protocol import Answer, Asked, Execute, FromGuest, Order, Settled, Started, Stop, ToolCall
from capsule.result import BlockError, ErrorKind, RunResult
from capsule.scope import AxonScope
from runtime.abi.errors import PolicyDenied
from runtime.abi.telemetry import Refused
from runtime.kernel.capsule.incarnation import Incarnation, Shape
from runtime.kernel.execution.execution import Block
from runtime.kernel.execution.plain import NotPlain, json_of
from runtime.kernel.process import Process
from runtime.kernel.supervisor import Row, Supervisor

NAME = "capsule"
SPARE = "capsule.spare"
SPARE_AFTER_S = 1.0
"""How long after the first incarnation is ready, or after a spare was used, the next spare starts."""
GRACE_S = 1.0
"""How long a block may take to end when it is told to; then the incarnation ends."""
AGAIN_S = 0.02
"""How often it is told."""
BEGIN_S = 5.0
"""How long a guest may take to begin a block."""
READY_S = 30.0
MAX_CALLS = 256
MAX_CALLS_BYTES = 2 * 1024 * 1024
"""Of the arguments of all calls that wait."""
ToolCaller = Callable[[ToolCall], Awaitable[Any]]


class _Running:
    """A block that the guest has, until it has settled."""

    def __init__(self, block: Block, deadline: asyncio.TimerHandle) -> None:
        self.block = block
        self.deadline = deadline
        self.began = False
        self.aim: ErrorKind | None = None
        """Why it was told to end."""
        self.again: asyncio.TimerHandle | None = None
        self.calls: set[asyncio.Task[None]] = set()

    def drop(self) -> None:
        """It is over: nothing waits for it, and nobody answers what it asked."""
        self.deadline.cancel()
        if self.again:
            self.again.cancel()
        for call in self.calls:
            call.cancel()


class Capsule:
    """``execute`` one run at a time. Lives on the kernel's loop; its processes start on the main thread."""

    def __init__(
        self,
        shape: Shape,
        *,
        supervisor: Supervisor,
        call_tool: ToolCaller,
        tell: Callable[[str, msgspec.Struct], None],
    ) -> None:
        self._shape = shape
        self._supervisor = supervisor
        self._call_tool = call_tool
        self._tell = tell
        self._scope = AxonScope()
        self._incarnation: Incarnation | None = None
        self._spare: Incarnation | None = None
        self._served = False
        self._ready = asyncio.Event()
        self._running: dict[str, _Running] = {}
        self._alone = False
        self._unbegun: list[Block] = []
        self._waiting_bytes = 0
        self._settled: Callable[[str, RunResult], None] = lambda _id, _result: None
        self._over = asyncio.Event()
        self._interrupted: set[str] = set()
        """Blocks of the present run that ended before they were given to an incarnation."""
        self._why_not = "the capsule is still being started"

    def start(self) -> None:
        """Start the first incarnation; on the loop, in the main thread, returns at once."""
        self._supervisor.add(Row(name=NAME, start=self._start, served=lambda: self._served))

    def scope_changed(self, scope: AxonScope) -> None:
        """Which tool modules blocks can import from now on."""
        self._scope = scope
        for incarnation in (self._incarnation, self._spare):
            if incarnation:
                incarnation.scope_changed(scope)

    # -- one run -----------------------------------------------------------------------------------

    async def execute(self, blocks: Sequence[Block], settled: Callable[[str, RunResult], None]) -> None:
        """Execute the blocks at once: a lone one in the guest's main thread, several in a thread each.

        ``settled`` gets each result as it comes; returns when every block has one. Raises nothing but
        ``CancelledError``, which ends the blocks first. Never called twice at once.
        """
        self._interrupted.clear()
        waiting = await self._try(blocks, settled)
        if waiting:
            waiting = await self._try(waiting, settled)
        for block in waiting:
            settled(block.id, _failed("exception", f"not executed: {self._why_not}"))

    async def _try(self, blocks: Sequence[Block], settled: Callable[[str, RunResult], None]) -> list[Block]:
        """Returns those that had not begun when their incarnation ended: none of them has done anything."""
        await self._until_ready({block.id for block in blocks})
        left: list[Block] = []
        for block in blocks:
            if block.id in self._interrupted:
                settled(block.id, _failed("interrupt", "the block was stopped before it began"))
            elif not self._ready.is_set():
                settled(block.id, _failed("exception", f"not executed: {self._why_not}"))
            else:
                left.append(block)
        return await self._run(left, settled) if left else []

    async def _until_ready(self, ids: set[str]) -> None:
        """Wait, bounded, for an incarnation, unless all of these were interrupted meanwhile."""
        try:
            async with asyncio.timeout(READY_S):
                while not self._ready.is_set() and not ids <= self._interrupted:
                    await self._ready.wait()
        except TimeoutError:  # told by each block's result
            self._end_incarnation(f"it wasn't ready within {READY_S:g} s")

    async def _run(self, blocks: Sequence[Block], settled: Callable[[str, RunResult], None]) -> list[Block]:
        assert self._incarnation is not None
        assert not self._running
        loop = asyncio.get_running_loop()
        self._settled, self._alone = settled, len(blocks) == 1
        self._over.clear()
        self._unbegun = []
        for block in blocks:
            late = loop.call_later(BEGIN_S, self._late, block.id)
            self._running[block.id] = _Running(block, late)
        self._incarnation.send(Execute([Order(block.id, block.code) for block in blocks]))
        try:
            await self._over.wait()
        except asyncio.CancelledError:
            self._end_incarnation("the run was abandoned")
            raise
        return self._unbegun

    def interrupt(self, block_ids: Collection[str]) -> None:
        """These end with ``interrupt``: alone when they can, else with their incarnation."""
        for block_id in block_ids:
            if block_id in self._running:
                self._aim(block_id, "interrupt")
            else:
                self._interrupted.add(block_id)
                self._wake_waiting()

    def _wake_waiting(self) -> None:
        """Whoever waits for an incarnation looks again at what was interrupted."""
        if not self._ready.is_set():
            self._ready.set()
            self._ready.clear()

    def _late(self, block_id: str) -> None:
        """A guest that doesn't even begin what it was given."""
        self._aim(block_id, "timeout")
        self._end_incarnation("a block didn't begin")

    def _aim(self, block_id: str, kind: ErrorKind) -> None:
        """Tell a block to end; what doesn't within the grace costs the incarnation."""
        running = self._running[block_id]
        if running.aim is not None:
            return
        running.aim = kind
        if running.began:
            self._begin_grace(running)
        self._hit(block_id)

    def _begin_grace(self, running: _Running) -> None:
        running.deadline.cancel()
        running.deadline = asyncio.get_running_loop().call_later(
            GRACE_S, self._end_incarnation, f"a block didn't end when it was told to ({running.aim})"
        )

    def _hit(self, block_id: str) -> None:
        """Again and again until it has settled: a block may catch it, and a guest lets pass what comes amiss."""
        running = self._running.get(block_id)
        if running is None or self._incarnation is None:
            return
        self._incarnation.send(Stop(block_id))
        if self._alone:
            self._incarnation.signal()
        running.again = asyncio.get_running_loop().call_later(AGAIN_S, self._hit, block_id)

    # -- lives -------------------------------------------------------------------------------------

    def _start(self, ended: Callable[[int], None], said: Callable[[str], None]) -> Process:
        """The spare takes the place of one that has ended, ready or about to be; else a new one starts."""
        self._served = False
        spare, self._spare = self._spare, None
        if spare and (process := spare.hand_over(lambda code: self._ended(spare, code, ended), said)):
            self._supervisor.vacate(SPARE)
            self._incarnation = spare
            if spare.is_ready:
                self.ready(spare)
            return process
        self._incarnation = incarnation = Incarnation(self._shape, events=self, scope=self._scope)
        try:
            return incarnation.start(lambda code: self._ended(incarnation, code, ended), said)
        except SandboxUnavailable as error:
            self._why_not = str(error)
            raise OSError(str(error)) from error

    def _start_spare(self, ended: Callable[[int], None], said: Callable[[str], None]) -> Process:
        spare = self._spare = Incarnation(self._shape, events=self, scope=self._scope)
        try:
            return spare.start(ended, said)
        except SandboxUnavailable as error:
            raise OSError(str(error)) from error

    def _end_incarnation(self, reason: str) -> None:
        """The kernel's last word; the blocks settle when the process has ended."""
        self._ready.clear()
        if self._incarnation:
            self._incarnation.kill(reason)

    def _ended(self, incarnation: Incarnation, code: int, ended: Callable[[int], None]) -> None:
        self._ready.clear()
        reason = incarnation.reason or f"the capsule's process ended with {code}"
        if not self._served and incarnation.last_words:
            reason = f"{reason}: {incarnation.last_words}"
        self._why_not = f"{reason}; the next one isn't ready"
        for block_id, running in list(self._running.items()):
            if incarnation.is_known and not running.began and running.aim is None:
                self._unbegun.append(running.block)
                self._forget(block_id)
                continue
            kind = running.aim or "exception"
            self._settle(block_id, _failed(kind, reason if kind == "exception" else _words(kind, running.block)))
        ended(code)

    # -- what an incarnation tells -------------------------------------------------------------------

    def ready(self, incarnation: Incarnation) -> None:
        """It takes blocks now."""
        if incarnation is self._incarnation:
            self._served = True
            self._ready.set()
            if SPARE not in self._supervisor.children:
                self._supervisor.add(Row(name=SPARE, start=self._start_spare, after_s=SPARE_AFTER_S))

    def refused(self, incarnation: Incarnation, error: AxonError) -> None:
        """A block spoke the protocol badly."""
        if incarnation is self._incarnation:
            self._ready.clear()
        self._tell("kernel:link:refused", Refused(code=error.code, example=error.message[:500]))

    def heard(self, incarnation: Incarnation, message: FromGuest) -> None:
        """A guest's message, which may be forged: it concerns the present run or ends the incarnation."""
        if incarnation is not self._incarnation:
            return
        match message:
            case Started(block_id) if block_id in self._running and not self._running[block_id].began:
                self._began(self._running[block_id])
            case Settled(block_id, result) if block_id in self._running:
                self._settle(block_id, _judged(result, self._running[block_id]))
            case Asked():
                self._serve(incarnation, message)
            case _:
                raise FrameInvalid(f"the capsule's guest sent {type(message).__name__} out of turn")

    def _began(self, running: _Running) -> None:
        running.began = True
        if running.aim is not None:
            self._begin_grace(running)
        else:
            running.deadline.cancel()
            running.deadline = asyncio.get_running_loop().call_later(
                running.block.timeout_s, self._aim, running.block.id, "timeout"
            )

    def _settle(self, block_id: str, result: RunResult) -> None:
        self._forget(block_id)
        self._settled(block_id, result)

    def _forget(self, block_id: str) -> None:
        self._running.pop(block_id).drop()
        if not self._running:
            self._over.set()

    # -- tools -------------------------------------------------------------------------------------

    def _serve(self, incarnation: Incarnation, asked: Asked) -> None:
        running = self._running.get(asked.tool.block)
        if running is None or not running.began:
            incarnation.send(Answer(asked.call, error="the block that called has ended"))
            return
        if len(running.calls) >= MAX_CALLS:
            incarnation.send(Answer(asked.call, error=f"{MAX_CALLS} calls of this block wait already"))
            return
        try:
            size = len(json_of([asked.tool.args, asked.tool.kwargs]))
        except NotPlain as error:
            raise FrameInvalid(f"the capsule's guest called a tool with what no stub sends: {error}") from None
        if self._waiting_bytes + size > MAX_CALLS_BYTES:
            incarnation.send(Answer(asked.call, error=f"calls with {MAX_CALLS_BYTES:,} bytes wait already"))
            return
        self._waiting_bytes += size
        task = asyncio.get_running_loop().create_task(self._call(incarnation, asked))
        running.calls.add(task)
        task.add_done_callback(lambda done: self._called(running, done, size))

    def _called(self, running: _Running, call: asyncio.Task[None], size: int) -> None:
        running.calls.discard(call)
        self._waiting_bytes -= size

    async def _call(self, incarnation: Incarnation, asked: Asked) -> None:
        try:
            incarnation.send(Answer(asked.call, value=await self._call_tool(asked.tool)))
        except AxonError as error:
            incarnation.send(Answer(asked.call, error=_utf8(error), denied=isinstance(error, PolicyDenied)))
        except Exception as error:
            # A defect of ours, or a value that no message carries: the block must not wait for it until it times out.
            incarnation.send(Answer(asked.call, error=f"the call failed: {_utf8(error)}"))
            raise


def _judged(result: RunResult, running: _Running) -> RunResult:
    """What the guest says of a block; why it was stopped is the kernel's to say."""
    if result.ok or running.aim is None:
        if result.error is not None and result.error.kind != "exception":
            return msgspec.structs.replace(result, error=BlockError(kind="exception", message=result.error.message))
        return result
    error = BlockError(kind=running.aim, message=_words(running.aim, running.block))
    return msgspec.structs.replace(result, ok=False, value=None, error=error)


def _words(kind: ErrorKind, block: Block) -> str:
    return f"the block took longer than {block.timeout_s:g} s" if kind == "timeout" else "the block was interrupted"


def _utf8(error: Exception) -> str:
    return str(error).encode("utf-8", "replace").decode()


def _failed(kind: ErrorKind, message: str) -> RunResult:
    return RunResult(ok=False, error=BlockError(kind=kind, message=message))
