"""What a driver moves: the protocol that the code for one device has to fit."""

from __future__ import annotations

from typing import Protocol

from runtime.abi.actuators import Value


class Hardware(Protocol):
    """One device. Both methods are called in the event loop's thread and return at once."""

    def apply(self, value: Value, *, command: str) -> None:
        """Move to the value; ``command`` is the id by which the log knows it."""

    def rest(self, value: Value, *, why: str) -> None:
        """Take the safe action, whose value this is; called at every reason for it, also when it is taken already."""

    def close(self) -> None:
        """Let go of the device; the safe action was taken."""
