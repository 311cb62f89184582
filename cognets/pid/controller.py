"""The controller: a projection of the log. The same entries give the same integral, whenever they are folded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from runtime.abi.entries import Entry
from runtime.abi.payloads import FieldStimulus, TextStimulus

SETPOINT = "setpoint"
MEASURED = "measured"
MAX_GAP_S = 1.0
"""Between two measurements that lie further apart nothing is integrated: nobody knows what happened there."""
_TOLD = re.compile(r"\b(kp|ki|kd|low|high|setpoint)\s*=\s*([-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?)", re.IGNORECASE)


@dataclass
class Controller:
    """Gains, limits of the control value, and what has been folded; units are those of the readings and seconds."""

    kp: float = 1.0
    ki: float = 0.0
    kd: float = 0.0
    low: float = -1.0
    high: float = 1.0
    setpoint: float | None = None
    measured: float | None = None
    integral: float = 0.0
    control: float = 0.0
    seq: int = 0
    boot_id: str = ""
    measured_us: int = 0

    def fold(self, entries: Iterable[Entry]) -> int:
        """Take in entries in their order; returns how many measurements were among them."""
        measurements = 0
        for entry in entries:
            self.seq = entry.time.seq
            match entry.data:
                case TextStimulus(content=words):
                    self._told(words)
                case FieldStimulus(source=source, reading=reading) if source.channel in (SETPOINT, MEASURED):
                    if isinstance(reading.value, bool) or not isinstance(reading.value, int | float):
                        continue
                    if source.channel == SETPOINT:
                        self.setpoint = float(reading.value)
                    else:
                        self._measure(float(reading.value), self._elapsed_s(entry))
                        measurements += 1
        return measurements

    def _told(self, words: str) -> None:
        """Gains, limits or the setpoint, in words; limits that exclude each other are left as they were."""
        told = {name.lower(): float(number) for name, number in _TOLD.findall(words)}
        told = {name: value for name, value in told.items() if math.isfinite(value)}
        if told.get("low", self.low) <= told.get("high", self.high):
            for name, value in told.items():
                setattr(self, name, value)

    def _elapsed_s(self, entry: Entry) -> float:
        """Since the measurement before, by the clock of one boot; 0 where that can't be known."""
        same, before = entry.context.boot_id == self.boot_id, self.measured_us
        self.boot_id, self.measured_us = entry.context.boot_id, entry.time.mono_us
        elapsed_s = (entry.time.mono_us - before) / 1e6
        return elapsed_s if same and 0 < elapsed_s <= MAX_GAP_S else 0.0

    def _measure(self, measured: float, elapsed_s: float) -> None:
        """One step. The derivative is of the measurement, so that a new setpoint gives no kick."""
        before, self.measured = self.measured, measured
        if self.setpoint is None:
            return
        error = self.setpoint - measured
        slope = (measured - before) / elapsed_s if elapsed_s and before is not None else 0.0
        grown = self.integral + self.ki * error * elapsed_s
        wanted = self.kp * error + grown - self.kd * slope
        self.control = _within(wanted, self.low, self.high)
        # Against wind-up: at a limit the integral only moves away from it.
        if self.control == wanted or (wanted > self.high) != (error > 0):
            self.integral = _within(grown, self.low, self.high)

    def to_checkpoint(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    @classmethod
    def from_checkpoint(cls, saved: Any) -> Controller:
        """What was saved; a fresh one where it can't be used."""
        names = {field.name for field in fields(cls)}
        return cls(**saved) if isinstance(saved, dict) and saved.keys() == names else cls()


def _within(value: float, low: float, high: float) -> float:
    """The value, kept between two limits; what isn't finite is 0 kept between them."""
    return min(max(value if math.isfinite(value) else 0.0, low), high)
