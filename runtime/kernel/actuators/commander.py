"""Decides what one actuator is told: every check between a value that was said and the command that carries it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from runtime.abi.actuators import ActuatorState, Release, SetValue, Stop, Value
from runtime.abi.errors import ActuatorAway, ActuatorLate, PolicyDenied
from runtime.config.actuators import RULES, Actuator
from runtime.kernel.actuators.device import Device
from runtime.kernel.actuators.limits import Slew
from runtime.policy.policy import Verdict

AGAIN_US = 100_000
"""A stop or a release is said again after so long at the earliest, while the actuator says something else."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A value of the actuator's kind, when it was said (monotonic), and by which entry; 0: by a tool's call."""

    value: Value
    said_us: int
    seq: int = 0


class Commander:
    """One actuator's decisions; nothing here sends."""

    def __init__(
        self,
        name: str,
        actuator: Actuator,
        *,
        boot: str,
        check: Callable[[str, dict[str, Value], int], Verdict],
    ) -> None:
        self.name = name
        self.actuator = actuator
        self.device = Device(boot)
        self._check = check
        self._slew = Slew(actuator, 0)
        self._told_us: int | None = None

    def heard(self, state: ActuatorState, now_us: int) -> None:
        """The actuator told its state."""
        begins = self.device.state is None or self.device.state.epoch != state.epoch
        self.device.heard(state, now_us)
        if begins:
            known = state.mode == "moving" and type(state.value) is type(self.actuator.safe)
            self._slew = Slew(self.actuator, now_us, at=state.value if known else None)
        elif self.device.rests:
            self._slew.rested(now_us)

    def command(self, order: Order, now_us: int) -> SetValue:
        """The command for a value; raises what it is refused for. Values of an output are limited, not refused."""
        self.check_time(order, now_us)
        self.check_there(now_us)
        if not order.seq:
            value = order.value  # a tool's call passed policy by its own name, and its range is checked
        else:
            self._check_policy(order, now_us)
            value = self._slew.limited(order.value, now_us)
        return self.device.set_value(
            value, unit=self.actuator.unit, said_us=order.said_us, ttl_ms=self.actuator.ttl_ms, seq=order.seq
        )

    def sent(self, command: SetValue, now_us: int) -> None:
        """That command is on its way."""
        self.device.sent_id = command.id
        self._slew.sent(command.value, now_us)

    def check_time(self, order: Order, now_us: int) -> None:
        """Raises ``ActuatorLate`` for what was said too long ago."""
        age_ms = (now_us - order.said_us) // 1000
        if age_ms >= self.actuator.ttl_ms:
            raise ActuatorLate(f"{self.name}: said {age_ms} ms ago, and it holds for {self.actuator.ttl_ms} ms")

    def check_there(self, now_us: int) -> None:
        """Raises ``ActuatorAway`` for an actuator that isn't heard."""
        if self.device.mode(now_us) == "gone":
            raise ActuatorAway(f"{self.name}: its driver isn't heard")

    def _check_policy(self, order: Order, now_us: int) -> None:
        """The table that binds it allows it; a rule that names it decides instead, but nobody is asked for outputs."""
        rule = f"{RULES}.{self.name}"
        verdict = self._check(rule, {"value": order.value}, now_us)
        if not verdict.rule or verdict.decision == "allow":
            return
        why = verdict.reason if verdict.decision == "deny" else "an output can't wait for a person"
        raise PolicyDenied(f"{rule}: {why}", name=rule, rule=verdict.rule)

    # -- the emergency stop ------------------------------------------------------------------------

    def owed(self, *, stopped: bool, stop: int, now_us: int) -> Stop | Release | None:
        """What it has to be told about the stop, if it says something else than the latch, and not too often."""
        if self._told_us is not None and now_us - self._told_us < AGAIN_US:
            return None
        if stopped:
            return None if self.device.holds(stop) else self.tell_stop(stop, now_us)
        holds = self.device.mode(now_us) == "stopped" and self.device.state is not None
        return self.tell_release(stop, now_us) if holds else None

    def tell_stop(self, stop: int, now_us: int) -> Stop:
        """The stop, now."""
        self._told_us = now_us
        return self.device.stop(stop)

    def tell_release(self, stop: int, now_us: int) -> Release:
        """The end of the stop, now."""
        self._told_us = now_us
        return self.device.release(stop, now_us)
