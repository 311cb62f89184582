"""``every``: calls a function at a fixed rhythm with absolute deadlines, without drift and without bursts."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

from runtime.abi.errors import CallInvalid, KernelStopping, WakeUnavailable
from runtime.abi.link import FromBrain, Missed
from runtime.brain.failure import describe
from runtime.brain.narration import Narration
from runtime.brain.scope import current_due_us
from runtime.brain.timerfd import NS, TimerFd

MIN_INTERVAL_S = 0.001
MAX_INTERVAL_S = 86_400.0


class Rhythm:
    """One call of ``every``; ``stop`` ends it."""

    def __init__(self, clocks: Clocks, *, interval_s: float, callback: Callable[[], Any]) -> None:
        self._clocks = clocks
        self._interval_ns = round(interval_s * NS)
        self._callback = callback
        self._timer: TimerFd | None = None
        self._due_ns = 0
        self._running: asyncio.Future[Any] | None = None
        self._stopped = False

    def start(self) -> None:
        """Begin; the first call is due one interval from now."""
        if self._stopped or self._timer is not None:
            return
        self._due_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._timer = TimerFd(first_ns=self._due_ns + self._interval_ns, interval_ns=self._interval_ns)
        asyncio.get_running_loop().add_reader(self._timer.fd, self._expired)

    def stop(self) -> None:
        """Call no more."""
        self._stopped = True
        self._clocks.rhythms.discard(self)
        if self._timer is not None:
            asyncio.get_running_loop().remove_reader(self._timer.fd)
            self._timer.close()
            self._timer = None

    def _expired(self) -> None:
        """Serve the newest period that is due; those missed whole, or while the last call runs, are counted."""
        timer = self._timer
        count = timer.expirations() if timer is not None else 0
        if count == 0:
            return
        self._due_ns += count * self._interval_ns
        is_busy = self._running is not None and not self._running.done()
        missed = count if is_busy else count - 1
        if missed:
            self._clocks.send(Missed(missed, "clock"))
        if not is_busy:
            self._call()

    def _call(self) -> None:
        context = Context()
        context.run(current_due_us.set, self._due_ns // 1000)
        try:
            result = context.run(self._callback)
            if inspect.iscoroutine(result):
                self._running = asyncio.get_running_loop().create_task(self._await(result), context=context)
            elif isinstance(result, asyncio.Future):
                self._running = result
        except Exception as error:  # noqa: BLE001 - a callback's failure must not stop the rhythm; it is told
            self._failed(error)

    async def _await(self, work: Any) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """A kernel that stops ends the rhythm in silence; a cognet that has no clock is told once."""
        if isinstance(error, KernelStopping | WakeUnavailable):
            self.stop()
        if not isinstance(error, KernelStopping):
            self._clocks.narration.report(f"every(): the callback failed: {describe(error)}")


class Clocks:
    """Every rhythm of one brain; they begin when the boot hooks are done."""

    def __init__(self, *, narration: Narration, send: Callable[[FromBrain], None]) -> None:
        self.narration = narration
        self.send = send
        self.rhythms: set[Rhythm] = set()
        self._is_open = self._is_closed = False

    def every(self, interval_s: float, callback: Callable[[], Any]) -> Rhythm:
        """Call ``callback`` every ``interval_s`` seconds; raises ``CallInvalid``, ``KernelStopping``."""
        if self._is_closed:
            raise KernelStopping("the kernel is shutting down; no clock is started any more", verb="every")
        is_number = isinstance(interval_s, int | float) and not isinstance(interval_s, bool)
        if not (is_number and MIN_INTERVAL_S <= interval_s <= MAX_INTERVAL_S):
            raise CallInvalid(f"every() takes {MIN_INTERVAL_S} to {MAX_INTERVAL_S:.0f} seconds, not {interval_s!r}")
        if not callable(callback):
            raise CallInvalid(
                f"every() takes a function, not {callback!r}", hint="Pass kernel.wake, not kernel.wake()."
            )
        rhythm = Rhythm(self, interval_s=interval_s, callback=callback)
        self.rhythms.add(rhythm)
        if self._is_open:
            rhythm.start()
        return rhythm

    def open(self) -> None:
        """Start what the boot hooks have asked for."""
        self._is_open = True
        for rhythm in list(self.rhythms):
            rhythm.start()

    def close(self) -> None:
        """Stop all, and begin none any more."""
        self._is_closed = True
        for rhythm in list(self.rhythms):
            rhythm.stop()
