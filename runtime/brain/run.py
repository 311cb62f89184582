"""One wake from its first tick to the end of its last spawned work, whatever the cognet does in it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from runtime.abi.clock import mono_us
from runtime.abi.ids import uuid7
from runtime.abi.link import Admitted, Ended, FromBrain
from runtime.brain.cognet import Cognet
from runtime.brain.failure import describe
from runtime.brain.narration import Narration, OpenSpan
from runtime.brain.scope import Scope, current_scope, hook_scope
from runtime.brain.stimuli import Inbox
from runtime.brain.wake import Wake


class Surroundings(Protocol):
    """What a run needs of the brain around it."""

    cognet: Cognet
    inbox: Inbox
    narration: Narration
    max_ticks: int

    def send(self, message: FromBrain) -> None:
        """Tell the kernel."""

    def took_stimuli(self) -> None:
        """A tick has taken all stimuli."""

    def overlap(self) -> int:
        """How many wakes are open."""


class Run:
    """Runs the loop's ticks, then waits for what they spawned; tells the kernel of its beginning and end."""

    def __init__(self, around: Surroundings, *, ordinal: int, due_us: int | None) -> None:
        self._around = around
        self._due_us = due_us
        self._began_us = mono_us()
        self._told = False
        self._error: str | None = None
        self._ticking: asyncio.Task[None] | None = None
        self.wake = Wake(id_=uuid7(), ordinal=ordinal, failed=self._spawned_failed)

    async def __call__(self) -> None:
        """Run the wake to its end; the cognet's exceptions stay inside."""
        try:
            await self._run_ticks()
            while self.wake.spawned:
                await asyncio.wait(self.wake.spawned)
        finally:
            self.wake.life.is_open = False
            self._announce()
            self._around.send(self._ended())

    def interrupt(self) -> None:
        """Cancel the tick and the spawned work; before the first tick, there won't be one."""
        self.wake.interrupt()
        if self._ticking is not None:
            self._ticking.cancel()

    async def _run_ticks(self) -> None:
        if self.wake.interrupted:
            return
        self._ticking = asyncio.current_task()
        try:
            while await self._tick():  # noqa: ASYNC110 - the sleep waits for no condition
                await asyncio.sleep(0)  # a loop that never awaits must not stop the heartbeat and the other wakes
        except asyncio.CancelledError:
            if not self.wake.interrupted:
                self._error = "CancelledError: the loop was cancelled from within"
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - groups and exits too: one wake never hurts another; it is told
            self._error = describe(error)
        finally:
            self._ticking = None

    async def _tick(self) -> bool:
        """One iteration; whether another one follows."""
        wake, around = self.wake, self._around
        wake.stimuli = around.inbox.take()
        around.took_stimuli()
        wake.tick += 1
        wake.cursor = around.inbox.cursor
        current_scope.set(Scope(wake.life, tick=wake.tick, cursor=wake.cursor))
        span = OpenSpan(around.narration, "tick", "")
        try:
            await self._hooks_then_body()
        except asyncio.CancelledError:
            span.end("interrupted")
            raise
        except BaseException as error:
            span.end("failed", describe(error))
            raise
        span.end("complete")
        return self._goes_on()

    async def _hooks_then_body(self) -> None:
        wake, cognet = self.wake, self._around.cognet
        if wake.tick == 1 and cognet.hooks["wake"]:
            await self._hooks("wake")
        if cognet.hooks["tick"]:
            await self._hooks("tick")
        self._announce()
        await cognet.body(wake)

    async def _hooks(self, name: str) -> None:
        for hook in self._around.cognet.hooks[name]:
            with hook_scope():
                await hook(self.wake)

    def _goes_on(self) -> bool:
        wake = self.wake
        if wake.stopped or wake.interrupted:
            return False
        if wake.tick < self._around.max_ticks:
            return True
        self._around.narration.report(
            f"the wake ended after {wake.tick} ticks (max_ticks_per_wake) without wake.stop()",
            level="warning",
            wake_id=wake.id,
        )
        return False

    def _announce(self) -> None:
        """Tell the kernel of the wake, at the first line of the loop, or when it ends without having come to it."""
        if self._told:
            return
        self._told = True
        late_us = None if self._due_us is None else max(0, mono_us() - self._due_us)
        self._around.send(Admitted(self.wake.id, self.wake.ordinal, late_us, self._around.overlap()))

    def _spawned_failed(self, error: BaseException) -> None:
        text = describe(error)
        self._error = self._error or text
        self._around.narration.report(f"spawned work failed: {text}", wake_id=self.wake.id)

    def _ended(self) -> Ended:
        wake = self.wake
        outcome = "failed" if self._error else "interrupted" if wake.interrupted else "complete"
        took_us = mono_us() - self._began_us
        return Ended(wake.id, wake.ordinal, outcome, wake.tick, took_us, wake.cursor, self._error)
