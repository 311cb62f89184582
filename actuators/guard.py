"""What an actuator obeys: the rules of docs/actuators.md as decisions, with no clock and no connection of their own."""

from __future__ import annotations

from runtime.abi.actuators import ActuatorState, Command, Mode, Release, SetValue, Stop, TakeSafe, Value

OBEYED = ""
MAX_AHEAD_MS = 61_000
"""No value holds longer than a minute: a command that says so was reckoned by another clock."""


class Guard:
    """Decides about every command; ``now_ms`` is the actuator's own monotonic clock. It begins in the safe action."""

    def __init__(self, *, epoch: str, safe: Value) -> None:
        self.epoch = epoch
        self.mode: Mode = "safe"
        self.value = safe
        self.until_ms: int | None = None
        """When the value's time is over; None in the safe action."""
        self._safe = safe
        self._stop = 0
        self._boot = ""
        self._number = 0
        self._last = ""
        self._refused = 0
        self._why = ""

    def take(self, command: Command, now_ms: int) -> str:
        """Obey, or say why not; "" is obeyed, and ``mode`` and ``value`` are what holds now."""
        why = self._refusal(command, now_ms)
        if why:
            self.refuse(why)
            return why
        self._boot, self._number = command.boot, self._newest(command)
        match command:
            case SetValue():
                self.mode, self.value, self.until_ms = "moving", command.value, command.until_ms
                self._last = command.id
            case TakeSafe():
                self._rest("stopped" if self.mode == "stopped" else "safe")
            case Stop():
                self._stop = max(self._stop, command.stop)
                self._rest("stopped")
            case Release():
                self._stop = 0
                self._rest("safe")
        return OBEYED

    def refuse(self, why: str) -> None:
        """Count what isn't obeyed; what can't even be read is the caller's to tell."""
        self._refused += 1
        self._why = why[:256]

    def expire(self, now_ms: int) -> bool:
        """Take the safe action if the value's time is over; whether it was."""
        if self.until_ms is None or now_ms <= self.until_ms:
            return False
        self._rest("safe")
        return True

    def rest(self) -> None:
        """Take the safe action, whatever is going on; a stop stays a stop."""
        self._rest("stopped" if self.mode == "stopped" else "safe")

    def state(self, now_ms: int, *, gone: bool = False) -> ActuatorState:
        """What to tell the kernel."""
        return ActuatorState(
            epoch=self.epoch,
            clock_ms=now_ms,
            mode="gone" if gone else self.mode,
            value=self.value,
            last=self._last,
            stop=self._stop,
            refused=self._refused,
            why=self._why,
        )

    def _rest(self, mode: Mode) -> None:
        self.mode, self.value, self.until_ms = mode, self._safe, None

    def _newest(self, command: Command) -> int:
        return max(command.number, self._number) if command.boot == self._boot else command.number

    def _refusal(self, command: Command, now_ms: int) -> str:
        """Why this isn't obeyed. Ending a motion is never refused; beginning one, or allowing it, is refused early."""
        if isinstance(command, Stop | TakeSafe):
            return OBEYED
        if command.epoch != self.epoch:
            return "it was meant for an earlier start of this actuator"
        if command.boot == self._boot and command.number <= self._number:
            return "it is older than what was obeyed since"
        if now_ms > command.until_ms:
            return f"it came {now_ms - command.until_ms} ms too late"
        if command.until_ms - now_ms > MAX_AHEAD_MS:
            return f"it is to hold for {command.until_ms - now_ms} ms"
        if isinstance(command, Release):
            return f"stop {self._stop} came after it" if command.stop < self._stop else OBEYED
        if self.mode == "stopped":
            return "the emergency stop holds"
        if type(command.value) is not type(self._safe):
            return f"{command.value!r} is of another kind than the safe value"
        return OBEYED
