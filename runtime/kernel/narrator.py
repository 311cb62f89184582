"""One place where the kernel's telemetry begins: stamped, checked, kept in the log's own table, shown on the bus."""

from __future__ import annotations

import msgspec

from runtime.abi.clock import mono_us
from runtime.abi.telemetry import TelemetryEvent, check
from runtime.kernel.bus import Bus
from runtime.log.log import Log


class Narrator:
    """``tell`` an event of the kernel's; ``pass_on`` one that the brain's code already stamped."""

    def __init__(self, log: Log, bus: Bus) -> None:
        self._log = log
        self._bus = bus

    def tell(self, type_: str, data: msgspec.Struct, wake_id: str | None = None) -> None:
        """What happened, now."""
        self.pass_on(
            TelemetryEvent(
                type=type_,
                mono_us=mono_us(),
                after_seq=self._log.last_seq,
                wake_id=wake_id,
                data=check(type_, data),
            )
        )

    def pass_on(self, event: TelemetryEvent) -> None:
        """Keep it and show it."""
        self._log.tell(event)
        self._bus.narrate(event)
