"""Telemetry of the machine itself through psutil: one field a channel, two times a second."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

import msgspec
import psutil

from runtime.abi.envelope import FieldEnvelope
from runtime.abi.errors import SensorInvalid, SourceUnreadable
from runtime.abi.payloads import Reading
from sensors.sample import Sample, SourcePlan

ALWAYS = ("cpu", "memory", "disk", "net_rx", "net_tx")
OF_THE_CPU = ("cpu_thermal", "cpu-thermal", "coretemp", "k10temp", "soc_thermal", "cpu", "acpitz")


class Temperature(Protocol):
    """One thermal sensor as psutil names it; degrees Celsius."""

    @property
    def current(self) -> float | None:
        """What it reads now."""


class HostOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The path whose disk is watched."""

    disk: str = "/"


class HostReadings:
    """``<channel>.cpu``, ``.memory``, ``.disk`` in %, ``.net_rx``, ``.net_tx`` in B/s, ``.temperature`` in °C.

    A board without thermal sensors has no temperature channel; one that comes and goes is left out while away.
    """

    default_fps: ClassVar[float] = 2.0
    Options: ClassVar[type[msgspec.Struct]] = HostOptions

    def __init__(self, plan: SourcePlan) -> None:
        if plan.argument:
            raise SensorInvalid("the source `psutil` takes nothing after it", hint='Write source = "psutil".')
        self._prefix = plan.channel
        self._disk: str = plan.options.disk
        thermal = () if cpu_temperature(read_thermal()) is None else ("temperature",)
        self.channels = tuple(f"{plan.channel}.{name}" for name in ALWAYS + thermal)
        self._has_thermal = bool(thermal)
        psutil.cpu_percent()  # the first call only starts the count
        self._net = self._network()
        self._disk_percent()

    def capture(self, counter: int) -> list[Sample]:  # noqa: ARG002  # the machine has no frames to number
        """Every channel's reading now; rates are since the capture before."""
        return [
            Sample(channel=f"{self._prefix}.{name}", envelope=FieldEnvelope(reading=Reading(value=value, unit=unit)))
            for name, value, unit in self._readings()
        ]

    def close(self) -> None:
        """Nothing to let go of."""

    def _readings(self) -> Iterator[tuple[str, float, str]]:
        yield "cpu", psutil.cpu_percent(), "%"
        yield "memory", psutil.virtual_memory().percent, "%"
        yield "disk", self._disk_percent(), "%"
        before, self._net = self._net, self._network()
        seconds = max(self._net[0] - before[0], 1e-3)
        for name, now, then in zip(("net_rx", "net_tx"), self._net[1:], before[1:], strict=True):
            yield name, round(max(now - then, 0) / seconds, 1), "B/s"
        warmth = cpu_temperature(read_thermal()) if self._has_thermal else None
        if warmth is not None:
            yield "temperature", warmth, "°C"

    def _disk_percent(self) -> float:
        try:
            return float(psutil.disk_usage(self._disk).percent)
        except OSError as error:
            raise SourceUnreadable(
                f"the disk of {self._disk!r} can't be asked: {error.strerror}", hint="set `disk` to a path that exists"
            ) from error

    def _network(self) -> tuple[float, int, int]:
        """Monotonic seconds, bytes received, bytes sent; a machine without interfaces counts nothing."""
        count = psutil.net_io_counters()
        return (time.monotonic(), *((count.bytes_recv, count.bytes_sent) if count else (0, 0)))


def read_thermal() -> dict[str, Sequence[Temperature]]:
    """Every thermal sensor by its driver's name; none where the kernel shows none."""
    read = getattr(psutil, "sensors_temperatures", None)  # psutil leaves it out where there is nothing to ask
    found: dict[str, Sequence[Temperature]] = read() if read else {}
    return found


def cpu_temperature(sensors: dict[str, Sequence[Temperature]]) -> float | None:
    """The warmest sensor of the processor, else of the board; None without any that reads plausibly."""
    ours = [name for name in OF_THE_CPU if name in sensors][:1] or list(sensors)
    values = [t.current for name in ours for t in sensors[name] if t.current is not None and -50 < t.current < 200]
    return round(max(values), 1) if values else None
