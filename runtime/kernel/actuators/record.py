"""What is written down about actuators: commands and refusals as telemetry, and few entries, for the brain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from capsule.errors import AxonError
from runtime.abi.actuators import SetValue, Value
from runtime.abi.clock import mono_us
from runtime.abi.errors import ActuatorAway
from runtime.abi.telemetry import Commanded, Health
from runtime.ingest.refusals import Refusals

ENTRY_EVERY_US = 10_000_000
STATE_EVERY_US = 50_000
STARTING_US = 5_000_000


class Records(Protocol):
    """Writes a fact of the machine into the log: ``Chronicle.record``."""

    def __call__(self, kind: str, text: str, **facts: Any) -> None:
        """``kind`` is the type of the message."""


class Record:
    """``tell`` takes telemetry; a refusal that goes on is one entry, one that comes and goes at most one in 10 s.

    What isn't there yet in the first seconds gets no entry: drivers and broker have just been started.
    """

    def __init__(self, *, tell: Callable[[str, msgspec.Struct], None], record: Records) -> None:
        self._tell = tell
        self._record = record
        self._refusals = Refusals("kernel:actuator:refused", tell)
        self._present: dict[str, str] = {}  # by actuator, the code it is being refused with
        self._entered_us: dict[tuple[str, str], int] = {}
        self._left_out: dict[tuple[str, str], int] = {}
        self._modes: dict[str, tuple[str, int]] = {}
        self._began_us = mono_us()

    def sent(self, name: str, command: SetValue, *, asked: Value) -> None:
        """A value went out; ``asked`` is told where a limit changed it."""
        self._present.pop(name, None)
        data = Commanded(
            actuator=name,
            value=command.value,
            asked=None if asked == command.value else asked,
            seq=command.seq,
            id=command.id,
        )
        self._tell("kernel:actuator:commanded", data)

    def refused(self, name: str, error: AxonError, *, seq: int, now_us: int) -> None:
        """A value didn't go out; the output entry, if one said it, stands."""
        self._refusals.add(error.code, error.message, channel=name, now_us=now_us)
        if isinstance(error, ActuatorAway) and now_us - self._began_us < STARTING_US:
            return
        key = (name, error.code)
        again = self._present.get(name) == error.code
        self._present[name] = error.code
        entered_us = self._entered_us.get(key)
        if again or (entered_us is not None and now_us - entered_us < ENTRY_EVERY_US):
            self._left_out[key] = self._left_out.get(key, 0) + 1
            return
        self._entered_us[key] = now_us
        facts = {"actuator": name, "code": error.code, "seq": seq, "left_out": self._left_out.pop(key, 0)}
        self._record("actuator", f"{name} isn't moved: {error.message}", **facts)

    def trouble(self, name: str, error: AxonError, now_us: int) -> None:
        """The actuator told something that is no state, or can't be told something now."""
        self._refusals.add(error.code, error.message, channel=name, now_us=now_us)

    def mode(self, name: str, mode: str, *, why: str, now_us: int) -> None:
        """What the actuator does now, if that is news."""
        known, told_us = self._modes.get(name, ("", -STATE_EVERY_US))
        if mode == known or now_us - told_us < STATE_EVERY_US:
            return
        self._modes[name] = (mode, now_us)
        self._tell("kernel:actuator:state", Health(channel=name, state=mode, facts={"why": why} if why else {}))

    def flush(self, now_us: int) -> None:
        """Tell what has gathered; called every now and then."""
        self._refusals.flush(now_us)
