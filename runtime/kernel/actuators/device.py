"""One actuator as the kernel knows it: what it told last, its own clock, and the numbered messages to it."""

from __future__ import annotations

from collections import deque

from runtime.abi.actuators import ActuatorState, Mode, Release, SetValue, Stop, TakeSafe, Value
from runtime.abi.ids import uuid7

AWAY_US = 3_000_000
"""An actuator that told nothing for so long isn't there."""
RELEASE_MS = 1000
SAMPLES = 8


class Device:
    """Reads the actuator's clock from its states; ``now_us`` is this machine's monotonic clock.

    A state may be delayed and is never early, so of the last few the one that came quickest tells the clock best, and
    a time that is reckoned from it is never later than it should be.
    """

    def __init__(self, boot: str) -> None:
        self._boot = boot
        self._number = 0
        self._offsets: deque[int] = deque(maxlen=SAMPLES)
        self.state: ActuatorState | None = None
        self.heard_us = 0
        self.sent_id = ""

    def heard(self, state: ActuatorState, now_us: int) -> None:
        """It told its state."""
        if self.state is None or self.state.epoch != state.epoch:
            if state.mode == "gone" and self.state is not None:
                return  # the last word of an earlier start
            self._offsets.clear()
            self.sent_id = ""
        self.state, self.heard_us = state, now_us
        self._offsets.append(state.clock_ms * 1000 - now_us)

    def mode(self, now_us: int) -> Mode:
        """What it does, as far as it is known; ``gone`` when it hasn't been heard for too long."""
        if self.state is None or now_us - self.heard_us > AWAY_US:
            return "gone"
        return self.state.mode

    def holds(self, stop: int) -> bool:
        """Whether it last said that it holds this stop, or a later one."""
        return self.state is not None and self.state.mode == "stopped" and self.state.stop >= stop

    @property
    def rests(self) -> bool:
        """Whether it last said that it is in its safe action, knowing of the last value that was sent."""
        if self.state is None or self.state.mode == "moving":
            return False
        return self.state.mode != "safe" or self.state.last == self.sent_id

    # -- messages ----------------------------------------------------------------------------------

    def set_value(self, value: Value, *, unit: str | None, said_us: int, ttl_ms: int, seq: int) -> SetValue:
        """A value that was said at ``said_us`` and holds for ``ttl_ms`` from then; a state must have been heard."""
        assert self.state
        return SetValue(
            boot=self._boot,
            number=self._next(),
            id=uuid7(),
            epoch=self.state.epoch,
            until_ms=self._theirs_ms(said_us) + ttl_ms,
            value=value,
            unit=unit,
            seq=seq,
            ttl_ms=ttl_ms,
        )

    def take_safe(self) -> TakeSafe:
        """The safe action, now."""
        return TakeSafe(boot=self._boot, number=self._next())

    def stop(self, stop: int) -> Stop:
        """The emergency stop of that number."""
        return Stop(boot=self._boot, number=self._next(), stop=stop)

    def release(self, stop: int, now_us: int) -> Release:
        """All stops up to that number are cleared; a state must have been heard."""
        assert self.state
        return Release(
            boot=self._boot,
            number=self._next(),
            stop=stop,
            epoch=self.state.epoch,
            until_ms=self._theirs_ms(now_us) + RELEASE_MS,
        )

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _theirs_ms(self, ours_us: int) -> int:
        return (ours_us + max(self._offsets)) // 1000
