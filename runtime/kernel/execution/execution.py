"""Executes blocks for whoever asks: one run after another, each written ahead, each result committed as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol

import msgspec

from capsule.errors import AxonError
from capsule.result import RunResult
from runtime.abi.clock import mono_us
from runtime.abi.errors import CallInvalid, KernelStopping
from runtime.abi.link import Call
from runtime.abi.payloads import PythonAction
from runtime.abi.telemetry import RunSpan
from runtime.kernel.brain_link import Verb, arguments
from runtime.kernel.execution.outcome import bounded, failed, payload, refused
from runtime.kernel.execution.run import MAX_BLOCKS, BlockRun, Run
from runtime.log.log import Log

MAX_WAKE_ID = 64
CLOSE_S = 2.0
AGAIN_S = 1.0
"""How often a result that the log didn't take is offered again."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What the capsule is asked to execute."""

    id: str
    code: str
    timeout_s: float


class Capsule(Protocol):
    """Who executes blocks."""

    async def execute(self, blocks: Sequence[Block], settled: Callable[[str, RunResult], None]) -> None:
        """Execute them at once; ``settled`` gets each result as it comes."""

    def interrupt(self, block_ids: Collection[str]) -> None:
        """These end now."""


class Execution:
    """The queue before the capsule, and the log's account of what it does. Lives on the kernel's loop."""

    def __init__(
        self,
        capsule: Capsule,
        *,
        log: Log,
        timeout_s: float,
        tell: Callable[[str, msgspec.Struct, str | None], None],
        prepared: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """``prepared`` is awaited before each run: what blocks may import must be there, or known to be missing."""
        self._capsule = capsule
        self._prepared = prepared
        self._log = log
        self._timeout_s = timeout_s
        self._tell = tell
        self._turn = asyncio.Lock()  # first come, first served
        self._runs: dict[Run, asyncio.Task[None]] = {}
        self._owed: list[tuple[Run, BlockRun]] = []
        self._owing: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may ask."""
        return {"run": self._serve_run}

    @property
    def requests(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        """What a person's command may ask."""
        return {"exec": self._serve_exec}

    async def _serve_exec(self, code: str) -> RunResult:
        return (await self.run([code], wake_id=None, cursor=None))[0]

    async def _serve_run(self, call: Call, _: Callable[[Any], None]) -> list[RunResult]:
        (codes,) = arguments(call, tuple[list[Any]])
        if call.wake_id is not None and len(call.wake_id) > MAX_WAKE_ID:
            raise CallInvalid(f"a wake's id has at most {MAX_WAKE_ID} characters")
        if len(codes) > MAX_BLOCKS:
            raise CallInvalid(f"run takes at most {MAX_BLOCKS} blocks at once, not {len(codes)}")
        cursor = call.cursor if call.cursor is not None and 0 <= call.cursor <= self._log.last_seq else None
        return await self.run(codes, wake_id=call.wake_id, cursor=cursor)

    async def run(self, codes: Sequence[Any], *, wake_id: str | None, cursor: int | None) -> list[RunResult]:
        """Execute the blocks at once, after the runs that were asked for before; their results in order.

        Never raises; when the caller is cancelled the blocks are interrupted, and their results are committed all
        the same.
        """
        if self._stopping:
            return [refused(KernelStopping("the kernel is shutting down; nothing is executed any more"))] * len(codes)
        run = Run(codes, wake_id=wake_id, cursor=cursor)
        if run.done.done():
            return run.done.result()
        self._runs[run] = asyncio.get_running_loop().create_task(self._conduct(run))
        try:
            return await run.done  # not shielded, which would cost a turn of the loop: the run itself is another task
        except asyncio.CancelledError:
            self._interrupt(run, "nobody waits for it any more")
            raise

    def interrupt(self) -> None:
        """An interrupt was admitted: every block of a wake that runs or waits now ends."""
        for run in list(self._runs):
            if run.wake_id is not None:
                self._interrupt(run, "the wake was interrupted")

    def stop(self) -> None:
        """The shutdown has begun: every block ends, nothing more is taken."""
        self._stopping = True
        for run in list(self._runs):
            self._interrupt(run, "the kernel is shutting down")

    async def close(self) -> None:
        """Wait, bounded, for what was interrupted; the capsule must still be there."""
        self.stop()
        if self._runs:
            _, late = await asyncio.wait(self._runs.values(), timeout=CLOSE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        if self._owing:
            self._owing.cancel()
        self._offer_again()

    # -- one run -----------------------------------------------------------------------------------

    async def _conduct(self, run: Run) -> None:
        """Its turn, its actions, its blocks; whatever happens, every block gets a result."""
        try:
            async with self._turn:
                if self._prepared:
                    await self._prepared()
                if await self._write_ahead(run):
                    await self._execute(run)
        except asyncio.CancelledError:
            self._settle_rest(run, failed("interrupt", "the kernel has shut down"))
            raise
        except BaseException as error:
            self._settle_rest(run, failed("exception", f"the kernel failed: {error!r}"))
            raise
        finally:
            del self._runs[run]

    async def _write_ahead(self, run: Run) -> bool:
        """Commit the actions of the blocks that begin now, together; whether they are durable."""
        seq = 0
        blocks = run.open
        for block in blocks:
            try:
                seq = self._record(run, block, last=block is blocks[-1])
            except AxonError as error:
                self._settle(run, block, refused(error))
        try:
            if seq:
                await self._log.durable(seq)
        except AxonError as error:
            self._settle_rest(run, failed("exception", f"not executed: {error}"))
        return bool(run.open)

    def _record(self, run: Run, block: BlockRun, *, last: bool) -> int:
        """Admit its action; the entry's ``seq``."""
        action = PythonAction(action=block.id, code=block.code)
        row = self._log.admit(
            "cognet:action:python",
            action,
            wake_id=run.wake_id,
            cursor=run.cursor,
            urgent=True,
            reserve=True,
            last=last,
        )
        block.is_recorded = True
        return row.seq

    async def _execute(self, run: Run) -> None:
        blocks = run.open
        for block in blocks:
            block.is_running, block.began_us = True, mono_us()
            self._tell("kernel:run:start", RunSpan(block=block.id), run.wake_id)
        asked = [Block(id=block.id, code=block.code, timeout_s=self._timeout_s) for block in blocks]
        await self._capsule.execute(asked, lambda id_, result: self._settled(run, id_, result))
        self._settle_rest(run, failed("exception", "the capsule gave no result"))

    def _settled(self, run: Run, block_id: str, result: RunResult) -> None:
        """The capsule is done with a block; what it says is checked, since a block may have said it."""
        if block := run.find(block_id):
            self._settle(run, block, bounded(result))

    def _interrupt(self, run: Run, why: str) -> None:
        running = [block.id for block in run.open if block.is_running]
        for block in run.open:
            if not block.is_running:
                self._settle(run, block, failed("interrupt", f"{why}; it hadn't begun"))
        if running:
            self._capsule.interrupt(running)

    # -- results -----------------------------------------------------------------------------------

    def _settle_rest(self, run: Run, result: RunResult) -> None:
        for block in run.open:
            self._settle(run, block, result)

    def _settle(self, run: Run, block: BlockRun, result: RunResult) -> None:
        """Commit the result of a block whose action is in the log, and hand it out."""
        block.result = result
        if block.is_recorded:
            try:
                self._commit(run, block)
            except AxonError as error:
                block.result = failed("exception", f"its result couldn't be recorded: {error}")
                self._owe(run, block)
        if block.is_running:
            self._tell_end(run, block)
        run.finish()

    def _commit(self, run: Run, block: BlockRun) -> None:
        assert block.result is not None
        data = payload(block.id, block.result)
        self._log.admit(
            "cognet:action:result",
            data,
            wake_id=run.wake_id,
            cursor=run.cursor,
            urgent=True,
            patient=True,  # the brain has it already; its next action is synced in any case
            reserve=True,
        )

    def _tell_end(self, run: Run, block: BlockRun) -> None:
        assert block.result is not None
        kind = block.result.error.kind if block.result.error else None
        state = {None: "complete", "interrupt": "interrupted"}.get(kind, "failed")
        span = RunSpan(block=block.id, took_us=mono_us() - block.began_us, error=kind)
        self._tell(f"kernel:run:{state}", span, run.wake_id)

    def _owe(self, run: Run, block: BlockRun) -> None:
        """An action must not stay without a result while this kernel runs."""
        self._owed.append((run, block))
        if self._owing is None or self._owing.done():
            self._owing = asyncio.get_running_loop().create_task(self._keep_offering())

    async def _keep_offering(self) -> None:
        while self._owed:
            await asyncio.sleep(AGAIN_S)
            self._offer_again()

    def _offer_again(self) -> None:
        owed, self._owed = self._owed, []
        for run, block in owed:
            try:
                self._commit(run, block)
            except AxonError:
                self._owed.append((run, block))  # the next start closes it if this kernel never can
