"""An actuator's limits as decisions: what is a value for it, and how far it may move now. ``now_us`` is monotonic."""

from __future__ import annotations

from math import isfinite

from runtime.abi.actuators import Value
from runtime.abi.errors import ActuatorRefused
from runtime.config.actuators import Actuator

_SHOWN = 60


def acceptable(actuator: Actuator, value: object, unit: str | None) -> Value:
    """The value, if it is of the actuator's kind and unit and finite; raises ``ActuatorRefused``."""
    if unit is not None and unit != actuator.unit:
        ours = "no unit" if actuator.unit is None else repr(actuator.unit)
        raise ActuatorRefused(f"it is in {unit!r}, the actuator has {ours}")
    if isinstance(value, bool) and actuator.is_switch:
        return value
    if type(value) in (int, float) and not actuator.is_switch and _finite(value):
        return float(value)  # type: ignore[arg-type]  # the line above says so
    wanted = "true or false" if actuator.is_switch else "a finite number"
    shown = repr(value) if not isinstance(value, int) or value.bit_length() < 200 else "a huge number"
    raise ActuatorRefused(f"{shown[:_SHOWN]} isn't {wanted}")


def check_range(actuator: Actuator, value: Value) -> None:
    """For what isn't limited but refused: raises ``ActuatorRefused`` outside of the range."""
    if actuator.min is not None and actuator.max is not None and not actuator.min <= value <= actuator.max:
        raise ActuatorRefused(f"{value:g} isn't from {actuator.min:g} to {actuator.max:g}")


class Slew:
    """Keeps an actuator's values in range, and no faster than its ``max_rate``.

    It counts from what the actuator is believed to apply: the last value sent, or the safe value once that one's time
    is over or the actuator said that it rests. Time at one place counts for no more than a value's time to live, so
    that a long rest allows no leap.
    """

    def __init__(self, actuator: Actuator, now_us: int, *, at: Value | None = None) -> None:
        """``at`` is the value that it is moving at already, by another kernel's word; None: it rests."""
        self._actuator = actuator
        self._ttl_us = actuator.ttl_ms * 1000
        self._at: Value = actuator.safe if at is None else at
        self._since_us = now_us
        self._resting = at is None

    def limited(self, value: Value, now_us: int) -> Value:
        """What may be sent now instead of ``value``."""
        low, high = self._actuator.min, self._actuator.max
        if low is None or high is None:
            return value
        self._rest_in_time(now_us)
        near = min(max(value, low), high)
        if self._actuator.max_rate is not None:
            step = self._actuator.max_rate * min(max(now_us - self._since_us, 0), self._ttl_us) / 1e6
            near = min(max(near, self._at - step), self._at + step)
        return min(max(near, low), high)

    def sent(self, value: Value, now_us: int) -> None:
        """The value is on its way."""
        self._at, self._since_us, self._resting = value, now_us, False

    def rested(self, now_us: int) -> None:
        """The actuator has taken its safe action."""
        if not self._resting:
            self._at, self._since_us, self._resting = self._actuator.safe, now_us, True

    def _rest_in_time(self, now_us: int) -> None:
        if not self._resting and now_us - self._since_us > self._ttl_us:
            self.rested(self._since_us + self._ttl_us)


def _finite(value: object) -> bool:
    """A whole number beyond what a float holds is none either."""
    try:
        return isfinite(value)  # type: ignore[arg-type]  # a number, as the caller has checked
    except OverflowError:
        return False
