"""What a driver is started with: one JSON object, as its only argument or on its standard input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from actuators.hardware import Hardware
from actuators.simulated import Simulated
from runtime.abi import payloads as p
from runtime.abi.actuators import Value
from runtime.abi.errors import ActuatorInvalid
from runtime.mqtt.address import BrokerAddress


class DriverSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``safe`` is the value of the safe action, ``parent`` the process this one must not outlive, ``trace`` a file."""

    agent: p.Channel
    name: p.Channel
    broker: BrokerAddress
    safe: Value
    trace: str | None = None
    parent: Annotated[int, msgspec.Meta(gt=0)] | None = None


def _simulated(settings: DriverSettings) -> Hardware:
    try:
        return Simulated(Path(settings.trace) if settings.trace else None)
    except OSError as error:
        raise ActuatorInvalid(f"the trace {settings.trace!r} can't be written: {error.strerror}") from error


DRIVERS: dict[str, Callable[[DriverSettings], Hardware]] = {"simulated": _simulated}
"""Every driver that ships, by the name that ``driver`` in ``axon.toml`` gives it."""


def read_settings(text: bytes | str) -> DriverSettings:
    """Parse and check; raises ``ActuatorInvalid``."""
    try:
        return msgspec.json.decode(text, type=DriverSettings)
    except msgspec.MsgspecError as error:
        raise ActuatorInvalid(f"the driver's settings can't be read: {error}") from error


def open_hardware(driver: str, settings: DriverSettings) -> Hardware:
    """The device of a driver; raises ``ActuatorInvalid``."""
    if driver not in DRIVERS:
        raise ActuatorInvalid(f"there is no driver {driver!r}", hint=f"drivers are {', '.join(sorted(DRIVERS))}")
    return DRIVERS[driver](settings)
