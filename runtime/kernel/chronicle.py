"""What the kernel writes into the log about the machine, and what it says of a boot to the person at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.payloads import SystemMessage
from runtime.abi.telemetry import Fact
from runtime.kernel.narrator import Narrator
from runtime.kernel.setup import Setup
from runtime.log.log import Log
from runtime.log.settings import Recovery

GOING_ON = "[kernel] going on with session"
"""How the line about an earlier start begins; it is of no more use once all runs."""


class Chronicle:
    """``record`` a fact of the machine; ``tell_boot`` all that a start has found."""

    def __init__(self, log: Log, *, narrator: Narrator, say: Callable[[str], None]) -> None:
        self._log = log
        self._narrator = narrator
        self._say = say

    def record(self, kind: str, text: str, **facts: Any) -> None:
        """A fact of the machine goes into the log; where that is full or failed, it is at least said."""
        try:
            self._log.admit("axon:system:message", SystemMessage(type=kind, text=text, facts=facts), reserve=True)
        except AxonError as error:
            self._say(f"[kernel] {text} (not recorded: {error.message})")

    def tell_boot(self, *, setup: Setup, broker: str) -> None:
        """How this start began, what of it the brain should know, and what the person should."""
        facts = msgspec.to_builtins(setup.log.recovery) | {
            "session": setup.session.id,
            "profile": setup.profile.name,
            "sandboxed": setup.sandboxed,
            "python": sys.version.split()[0],
            "broker": broker,
        }
        self._narrator.tell("kernel:boot", Fact(facts=facts))
        found = setup.log.recovery
        if found.damage or not setup.asked.command:  # a command's own kernel says what its answer depends on
            self._say_recovery(found, setup.session.id)
        if not setup.sandboxed:
            why = "inline" if setup.asked.inline else "--no-sandbox"
            self.record("sandbox", f"the brain runs without a sandbox ({why})", why=why)
        if setup.asked.volatile_data:
            self.record("storage", "the data folder may lose what was acknowledged (--volatile-data)")
        self._tell_stop(setup)

    def _tell_stop(self, setup: Setup) -> None:
        for change in setup.latch.take_unlogged():
            kind = "stop" if change.latched else "stop-cleared"
            text = f"emergency stop {'by' if change.latched else 'cleared by'} {change.by} while no kernel ran"
            self.record(kind, f"{text}: {change.reason}" if change.reason else text, by=change.by, ms=change.ms)
        if setup.latch.latched:
            self.record("stop", "the emergency stop is latched from before this start", by=setup.latch.state.by)
            self._say("[kernel] the emergency stop is latched; `axon stop DIR --clear` clears it")

    def _say_recovery(self, found: Recovery, session_id: str) -> None:
        if found.damage:
            kept = f"; the damaged file is kept as {found.set_aside}" if found.set_aside else ""
            self._say(f"[kernel] the log was damaged: {found.damage}; {found.replayed} entries are whole{kept}")
        elif not found.clean_before:
            self._say(f"[kernel] the run before didn't end in order; its {found.replayed} entries are whole")
        elif found.replayed:
            self._say(f"{GOING_ON} {session_id}: {found.replayed} entries")
