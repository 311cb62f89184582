"""Admits wakes and keeps the open ones: as many as overlap for a continuous cognet, one for an invocation cognet."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context

from runtime.abi.errors import KernelStopping
from runtime.abi.link import Missed
from runtime.brain.run import Run, Surroundings


class Scheduler:
    """Numbers wakes and runs each as a task of its own; ``ended`` is called after the end of each.

    Wakes admitted before ``open`` (in boot hooks) begin then.
    """

    def __init__(self, around: Surroundings, *, wakes: int, max_overlap: int) -> None:
        self._around = around
        self._max_overlap = max_overlap
        self._waiting: deque[tuple[asyncio.Future[int], int | None]] = deque()
        self._held: list[Run] | None = []
        self._runs: dict[Run, asyncio.Task[None] | None] = {}
        self.wakes = wakes
        self.stopping = False
        self.ended: Callable[[], None] = lambda: None

    @property
    def open_wakes(self) -> int:
        """How many wakes are open."""
        return len(self._runs)

    def check_admits(self) -> None:
        """Raise ``KernelStopping`` when no wake is admitted any more."""
        if self.stopping:
            raise KernelStopping("the kernel is shutting down; no wake is admitted any more")

    async def wake(self, due_us: int | None) -> int:
        """Admit a wake and return its ordinal; waits, and tells it, while ``max_overlap`` wakes are open."""
        self.check_admits()
        if self.open_wakes < self._max_overlap and not self._waiting:
            return self.admit(due_us)
        self._around.send(Missed(1, "overlap"))
        place: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, due_us))
        return await place

    def admit(self, due_us: int | None = None) -> int:
        """Admit a wake at once."""
        self.wakes += 1
        run = Run(self._around, ordinal=self.wakes, due_us=due_us)
        self._runs[run] = None
        if self._held is None:
            self._start(run)
        else:
            self._held.append(run)
        return self.wakes

    def open(self) -> None:
        """The boot hooks are done: start what they admitted, and from now on everything at once."""
        held, self._held = self._held or [], None
        for run in held:
            self._start(run)

    def _start(self, run: Run) -> None:
        task = asyncio.get_running_loop().create_task(run(), name=f"wake {run.wake.ordinal}", context=Context())
        self._runs[run] = task
        task.add_done_callback(lambda done: self._end(run, done))

    def _end(self, run: Run, task: asyncio.Task[None]) -> None:
        del self._runs[run]
        while self._waiting and self.open_wakes < self._max_overlap and not self.stopping:
            place, due_us = self._waiting.popleft()
            if not place.done():
                place.set_result(self.admit(due_us))
        if not task.cancelled():
            task.result()  # a fault of the runtime itself, never of the cognet, is for the loop to report
            self.ended()

    def interrupt(self) -> None:
        """Cancel every wake that is open now."""
        for run in self._runs:
            run.interrupt()

    async def close(self, timeout_s: float) -> bool:
        """Admit no more, interrupt the open wakes and await them, at most that long; whether all ended."""
        self.stopping = True
        self._held = None
        for place, _ in self._waiting:
            if not place.done():
                place.set_exception(KernelStopping("the kernel is shutting down; the wake wasn't admitted"))
        self._waiting.clear()
        self.interrupt()
        tasks = [task for task in self._runs.values() if task is not None]
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=timeout_s)
        return not pending

    def abandon(self) -> None:
        """The kernel is lost: cancel what still runs without waiting."""
        self.stopping = True
        for run, task in list(self._runs.items()):
            run.interrupt()
            if task is not None:
                task.cancel()
