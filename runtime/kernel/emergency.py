"""Interrupt and emergency stop, from whichever side they come: the act first, the record after, each reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.payloads import Interrupt, SystemMessage
from runtime.abi.telemetry import Fact
from runtime.kernel.actuators.actuators import Actuators
from runtime.kernel.narrator import Narrator
from runtime.kernel.stop import StopLatch
from runtime.log.log import Log

RECORD_S = 5.0
CONFIRM_S = 1.0
"""How long the actuators may take to say that they have stopped, before the report names those that haven't."""
WORDS = 256
AGAIN_S = 1.0
"""How often a record that the disk didn't take is tried again."""


class StopReport(msgspec.Struct, frozen=True, kw_only=True):
    """``stopped``: nothing is sent to an actuator any more; ``recorded`` is another promise, and ``why`` what it lacks.

    ``confirmed`` are the actuators that said that they have stopped (or, of a clearing, that they go on), by name;
    ``unconfirmed`` those that didn't say so in time.
    """

    stopped: bool
    recorded: bool
    confirmed: list[str] = []
    unconfirmed: list[str] = []
    seq: int = 0
    why: str = ""


class Emergency:
    """Owns the latch while the kernel runs."""

    def __init__(
        self,
        *,
        latch: StopLatch,
        actuators: Actuators,
        log: Log,
        narrator: Narrator,
        changed: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._latch = latch
        self._actuators = actuators
        self._log = log
        self._narrator = narrator
        self._changed = changed
        self._say = say
        # One thread: however long the disk takes, the state that is written last is the one that holds.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="stop")
        self._saved = latch.state
        self._unwritten: SystemMessage | None = None

    @property
    def latched(self) -> bool:
        """Whether nothing may move."""
        return self._latch.latched

    async def interrupt(self, *, by: str, reason: str = "", command: str = "") -> int:
        """Cancel every wake admitted before this entry; returns its ``seq`` once durable."""
        entry = Interrupt(by=by[:WORDS], reason=reason[:WORDS] or None, command=command[:WORDS] or None)
        row = self._log.admit("axon:interrupt", entry, urgent=True, reserve=True)
        await self._log.durable(row.seq)
        return row.seq

    async def stop(self, *, by: str, reason: str = "") -> StopReport:
        """Latch and tell every actuator at once, then record; a failed disk leaves the robot stopped and says so."""
        self.stop_now(by=by, reason=reason)
        return await self._settle()

    def stop_now(self, *, by: str, reason: str = "") -> None:
        """The act alone: in memory, and out to the actuators, in this turn of the loop. It is recorded soon."""
        by, reason = by[:WORDS], reason[:WORDS]  # a long story must not keep a robot moving
        self._latch.latch(by=by, reason=reason)
        self._act("stop", f"emergency stop by {by}" + (f": {reason}" if reason else ""), by)
        self._narrator.tell("kernel:stop:latched", Fact(message=reason, facts={"by": by}))

    def adopt(self, count: int, name: str) -> None:
        """An actuator holds a stop that this kernel doesn't know: its file was lost, so the stop holds here too."""
        latched = self._latch.latched
        self._latch.know(count)
        if not latched:
            self.stop_now(by=f"actuator {name}", reason="it holds a stop that this kernel has no record of")
            self._say(f"[kernel] {name} holds an emergency stop that this kernel has no record of: it is latched again")

    async def clear(self, *, by: str) -> StopReport:
        """A person says that moving is safe; refused by nobody, recorded like the stop."""
        by = by[:WORDS]
        self._latch.clear(by=by)
        self._act("stop-cleared", f"emergency stop cleared by {by}", by)
        self._narrator.tell("kernel:stop:cleared", Fact(facts={"by": by}))
        return await self._settle()

    async def keep_recording(self) -> None:
        """Record what the disk didn't take at the time, once it takes something again; runs until cancelled."""
        while True:
            await asyncio.sleep(AGAIN_S)
            await self._follow_file()
            owed = self._unwritten is not None or self._saved is not self._latch.state
            if owed and self._log.state == "ok" and (await self._write()).recorded:
                self._say(f"[kernel] recorded now: the emergency stop is {'latched' if self.latched else 'clear'}")

    async def _follow_file(self) -> None:
        """Somebody stopped the agent by its file while this kernel didn't answer: that stop holds."""
        outside = await asyncio.get_running_loop().run_in_executor(self._thread, self._latch.stopped_outside)
        if outside and not self.latched:
            await self.stop(by=outside.by, reason=outside.reason)

    def _act(self, kind: str, text: str, by: str) -> None:
        """The latch has changed: the actuators hear it before anything else is done."""
        self._actuators.announce()
        self._changed()
        self._unwritten = SystemMessage(type=kind, text=text, facts={"by": by})

    async def _settle(self) -> StopReport:
        """Record, and hear from the actuators meanwhile."""
        answers, report = await asyncio.gather(self._actuators.answers(CONFIRM_S), self._write())
        return msgspec.structs.replace(report, confirmed=answers.confirmed, unconfirmed=answers.unconfirmed)

    async def _write(self) -> StopReport:
        """File and entry side by side: a slow disk is waited for once."""
        seq, refused = self._admit()
        try:
            async with asyncio.timeout(RECORD_S):
                unsaved, undurable = await asyncio.gather(asyncio.shield(self._save()), self._durable(seq))
        except TimeoutError:
            unsaved, undurable = f"the disk didn't answer within {RECORD_S:g} s", ""
        why = "; ".join(each for each in (refused, unsaved, undurable) if each)
        return self._report(recorded=not why, seq=seq, why=why)

    def _admit(self) -> tuple[int, str]:
        """The entry's ``seq``; from then on the log writes it as soon as it can."""
        if self._unwritten is None:
            return 0, ""
        try:
            row = self._log.admit("axon:system:message", self._unwritten, urgent=True, reserve=True)
        except AxonError as error:
            return 0, str(error)
        self._unwritten = None
        return row.seq, ""

    async def _durable(self, seq: int) -> str:
        try:
            await self._log.durable(seq)
        except AxonError as error:
            return str(error)
        return ""

    async def _save(self) -> str:
        state = self._latch.state
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._latch.save)
        except OSError as error:
            return str(error)
        self._saved = state
        return ""

    def _report(self, *, recorded: bool, seq: int, why: str = "") -> StopReport:
        return StopReport(stopped=self._latch.latched, recorded=recorded, seq=seq, why=why)

    async def status(self) -> dict[str, Any]:
        """The latch as values."""
        result: dict[str, Any] = msgspec.to_builtins(self._latch.state)
        return result
