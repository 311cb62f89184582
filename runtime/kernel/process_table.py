"""The process table: what the kernel keeps running besides the brain, one row each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from hardware_profiles.profile import Profile
from runtime.config.actuators import Actuator
from runtime.config.sections import Sensor
from runtime.kernel.process import Process, spawn
from runtime.kernel.setup import Setup
from runtime.kernel.supervisor import Row
from runtime.mqtt.address import BrokerAddress
from runtime.mqtt.broker import BrokerPlan


def broker_row(broker: BrokerPlan, profile: Profile) -> Row:
    """The private broker; it shares the kernel's cores, since every stimulus waits for it."""
    assert broker.argv
    return _row("broker", broker.argv, cores=_cores(profile, "kernel"))


def sensor_rows(setup: Setup, address: BrokerAddress) -> list[Row]:
    """One driver process a sensor."""
    cores = _cores(setup.profile, "sensors")
    return [
        _row(
            sensor.name,
            [sys.executable, "-P", "-m", "sensors", sensor.driver],
            cores=cores,
            told=_settings(setup.agent.agent.name, sensor, address),
        )
        for sensor in setup.agent.sensors
    ]


def actuator_rows(setup: Setup, address: BrokerAddress) -> list[Row]:
    """One driver process an actuator, but for those that somebody else drives."""
    return [
        _row(
            f"actuator:{name}",
            [sys.executable, "-P", "-m", "actuators", actuator.driver],
            cores=_cores(setup.profile, "sensors"),
            told=_actuator_settings(setup.agent.agent.name, name, actuator=actuator, address=address),
        )
        for name, actuator in setup.agent.actuators.items()
        if actuator.driver != "mqtt"
    ]


def driver_rows(setup: Setup, address: BrokerAddress) -> list[Row]:
    """All drivers; actuators first, so that they are at rest before anything else begins."""
    return [*actuator_rows(setup, address), *sensor_rows(setup, address)]


def drivers(setup: Setup) -> list[str]:
    """The names of their rows."""
    sensors = [sensor.name for sensor in setup.agent.sensors]
    return [*sensors, *(f"actuator:{name}" for name in setup.agent.actuators)]


def program_row(name: str, argv: list[str]) -> Row:
    """An observer that owns the terminal, such as the live status; its clean end is an end."""
    return Row(name=name, start=partial(_start, argv, own_output=False), quick=True)


def _settings(agent: str, sensor: Sensor, address: BrokerAddress) -> bytes:
    """What the driver reads on its standard input; a password among it is nobody else's business."""
    settings = {
        **sensor.options,
        "agent": agent,
        "broker": msgspec.to_builtins(address),
        "channel": sensor.channel,
        "source": sensor.source,
        "fps": sensor.fps,
        "id": sensor.id,
        "transient": sensor.transient,
        "parent": os.getpid(),
    }
    return msgspec.json.encode(settings)


def _actuator_settings(agent: str, name: str, *, actuator: Actuator, address: BrokerAddress) -> bytes:
    settings = {
        "agent": agent,
        "name": name,
        "broker": msgspec.to_builtins(address),
        "safe": actuator.safe,
        "trace": actuator.trace,
        "parent": os.getpid(),
    }
    return msgspec.json.encode(settings)


def _cores(profile: Profile, role: str) -> list[int]:
    return sorted(profile.cores.usable("kernel" if role == "kernel" else "sensors", os.sched_getaffinity(0)))


def _row(name: str, argv: Sequence[str], *, cores: Sequence[int], told: bytes = b"") -> Row:
    return Row(name=name, start=partial(_start, argv, cores=cores, told=told))


def _start(
    argv: Sequence[str],
    ended: Callable[[int], None],
    said: Callable[[str], None],
    *,
    cores: Sequence[int] = (),
    told: bytes = b"",
    own_output: bool = True,
) -> Process:
    popen, output = spawn(argv, cores=cores, told=told, own_output=own_output)
    process = Process(popen, ended=ended, said=said)
    if output is not None:
        process.listen(output)
    return process
