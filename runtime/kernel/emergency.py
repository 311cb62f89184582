"""Interrupt and emergency stop, from whichever side they come: the act first, the record after, both reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.payloads import Interrupt, SystemMessage
from runtime.abi.telemetry import Fact
from runtime.kernel.narrator import Narrator
from runtime.kernel.stop import StopLatch
from runtime.log.log import Log

RECORD_S = 5.0


class StopReport(msgspec.Struct, frozen=True, kw_only=True):
    """``stopped`` and ``recorded`` are two promises; ``why`` tells what the second one lacks."""

    stopped: bool
    recorded: bool
    unconfirmed: list[str] = []
    seq: int = 0
    why: str = ""


class Emergency:
    """Owns the latch while the kernel runs."""

    def __init__(self, *, latch: StopLatch, log: Log, narrator: Narrator, changed: Callable[[], None]) -> None:
        self._latch = latch
        self._log = log
        self._narrator = narrator
        self._changed = changed
        self._saving = asyncio.Lock()

    @property
    def latched(self) -> bool:
        """Whether nothing may move."""
        return self._latch.latched

    async def interrupt(self, *, by: str, reason: str = "", command: str = "") -> int:
        """Cancel every wake admitted before this entry; returns its ``seq`` once durable."""
        entry = Interrupt(by=by, reason=reason or None, command=command or None)
        row = self._log.admit("axon:interrupt", entry, urgent=True, reserve=True)
        await self._log.durable(row.seq)
        return row.seq

    async def stop(self, *, by: str, reason: str = "") -> StopReport:
        """Latch at once, then record; a failed disk leaves the robot stopped and says so."""
        self._latch.latch(by=by, reason=reason)
        self._changed()
        self._narrator.tell("kernel:stop:latched", Fact(message=reason, facts={"by": by}))
        return await self._record("stop", f"emergency stop by {by}" + (f": {reason}" if reason else ""), by)

    async def clear(self, *, by: str) -> StopReport:
        """A person says that moving is safe; refused by nobody, recorded like the stop."""
        self._latch.clear(by=by)
        self._changed()
        self._narrator.tell("kernel:stop:cleared", Fact(facts={"by": by}))
        return await self._record("stop-cleared", f"emergency stop cleared by {by}", by)

    async def _record(self, kind: str, text: str, by: str) -> StopReport:
        seq = 0
        try:
            async with asyncio.timeout(RECORD_S):
                async with self._saving:
                    await asyncio.to_thread(self._latch.save)
                message = SystemMessage(type=kind, text=text, facts={"by": by})
                seq = self._log.admit("axon:system:message", message, urgent=True, reserve=True).seq
                await self._log.durable(seq)
        except TimeoutError:
            return self._report(recorded=False, seq=seq, why=f"the disk didn't answer within {RECORD_S:g} s")
        except (AxonError, OSError) as error:
            return self._report(recorded=False, seq=seq, why=str(error))
        return self._report(recorded=True, seq=seq)

    def _report(self, *, recorded: bool, seq: int, why: str = "") -> StopReport:
        return StopReport(stopped=self._latch.latched, recorded=recorded, seq=seq, why=why)

    async def status(self) -> dict[str, Any]:
        """The latch as values."""
        result: dict[str, Any] = msgspec.to_builtins(self._latch.state)
        return result
