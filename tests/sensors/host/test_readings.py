"""The host's readings are real, and what a board lacks is left out."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from runtime.abi.envelope import FieldEnvelope
from runtime.abi.errors import SensorInvalid, SourceUnreadable
from sensors.host.readings import HostOptions, HostReadings, cpu_temperature
from sensors.sample import SourcePlan


class Thermal(NamedTuple):
    """One thermal sensor, as psutil has it."""

    current: float | None


def host(argument: str = "", disk: str = "/") -> HostReadings:
    return HostReadings(SourcePlan(channel="host", argument=argument, fps=2, options=HostOptions(disk=disk)))


def readings(source: HostReadings) -> dict[str, tuple[object, str | None]]:
    found = {}
    for sample in source.capture(1):
        assert isinstance(sample.envelope, FieldEnvelope)
        found[sample.channel] = sample.envelope.reading.value, sample.envelope.reading.unit
    return found


def test_every_channel_has_a_reading_with_its_unit() -> None:
    source = host()
    found = readings(source)
    units = {name: unit for name, (_, unit) in found.items() if name != "host.temperature"}
    assert units == {
        "host.cpu": "%", "host.memory": "%", "host.disk": "%", "host.net_rx": "B/s", "host.net_tx": "B/s",
    }  # fmt: skip
    assert set(found) == set(source.channels)


@pytest.mark.parametrize("name", ["host.cpu", "host.memory", "host.disk"])
def test_a_share_is_between_0_and_100(name: str) -> None:
    value, _ = readings(host())[name]
    assert isinstance(value, float)
    assert 0 <= value <= 100


def test_a_rate_is_never_negative() -> None:
    source = host()
    for _ in range(3):
        found = readings(source)
        assert all(isinstance(found[name][0], float) and found[name][0] >= 0 for name in ("host.net_rx", "host.net_tx"))


def test_a_disk_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SourceUnreadable, match="disk"):
        host(disk="/no/such/path")


def test_it_takes_no_argument() -> None:
    with pytest.raises(SensorInvalid):
        host("something")


def test_a_board_without_thermal_sensors_has_no_temperature() -> None:
    assert cpu_temperature({}) is None
    assert cpu_temperature({"cpu_thermal": []}) is None


def test_the_processor_counts_before_the_rest() -> None:
    sensors = {"nvme": [Thermal(70.0)], "cpu_thermal": [Thermal(41.04), Thermal(48.06)]}
    assert cpu_temperature(sensors) == 48.1


def test_without_a_sensor_of_the_processor_the_warmest_counts() -> None:
    assert cpu_temperature({"nvme": [Thermal(70.0)], "board": [Thermal(30.0)]}) == 70.0


def test_what_cannot_be_a_temperature_is_left_out() -> None:
    assert cpu_temperature({"coretemp": [Thermal(None), Thermal(-273.0), Thermal(1e6), Thermal(50.0)]}) == 50.0
    assert cpu_temperature({"coretemp": [Thermal(None)]}) is None
