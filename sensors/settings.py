"""What a driver is started with: one JSON object, as its only argument or on its standard input."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import msgspec

from runtime.abi import payloads as p
from runtime.abi.errors import SensorInvalid
from runtime.mqtt.address import BrokerAddress
from sensors.sample import Source, SourcePlan

DRIVERS: dict[str, dict[str, str]] = {
    "camera": {
        "synthetic": "sensors.camera.synthetic:SyntheticCamera",
        "images": "sensors.camera.images:ImagesCamera",
        "video": "sensors.camera.video:VideoCamera",
    },
    "microphone": {
        "synthetic": "sensors.microphone.synthetic:SyntheticMicrophone",
        "wav": "sensors.microphone.wav:WavMicrophone",
    },
    "host": {"psutil": "sensors.host.readings:HostReadings"},
}
"""Every driver's sources, the default first. A source's module is imported only by the driver that uses it."""


class DriverSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What every driver takes; what a source takes besides is in ``options``.

    ``fps`` is captures a second (frames, blocks, rounds of readings); ``parent`` the process this one must not
    outlive; a ``transient`` channel is sent once, without confirmation.
    """

    agent: p.Channel
    broker: BrokerAddress
    channel: p.Channel
    source: str = ""
    fps: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None
    id: p.ShortText | None = None
    transient: bool = False
    parent: Annotated[int, msgspec.Meta(gt=0)] | None = None
    spool_count: Annotated[int, msgspec.Meta(ge=1)] = 2000
    spool_bytes: Annotated[int, msgspec.Meta(ge=1)] = 32 * 1024 * 1024
    options: dict[str, Any] = {}


def read_settings(text: bytes | str) -> DriverSettings:
    """Parse and check; keys that aren't a driver's are the source's options. Raises ``SensorInvalid``."""
    common = {field.name for field in msgspec.structs.fields(DriverSettings)} - {"options"}
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
        options = {key: value for key, value in found.items() if key not in common}
        given = {key: value for key, value in found.items() if key in common}
        return msgspec.convert({**given, "options": options}, DriverSettings)
    except msgspec.MsgspecError as error:
        raise SensorInvalid(f"the driver's settings can't be read: {error}") from error


def open_source(driver: str, settings: DriverSettings) -> tuple[Source, float]:
    """The source of a driver and its captures a second; raises ``SensorInvalid`` or what the source raises."""
    if driver not in DRIVERS:
        raise SensorInvalid(f"there is no driver {driver!r}", hint=f"drivers are {', '.join(sorted(DRIVERS))}")
    name, _, argument = (settings.source or next(iter(DRIVERS[driver]))).partition(":")
    kind = source_class(driver, name)
    fps = settings.fps or kind.default_fps
    try:
        options = msgspec.convert(settings.options, kind.Options)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(kind.Options))
        raise SensorInvalid(
            f"the source {name!r} of the driver {driver!r} doesn't take this: {error}", hint=f"its options are {known}"
        ) from error
    source = kind(SourcePlan(channel=settings.channel, argument=argument, fps=fps, options=options))
    _check_channels(source.channels)
    return source, fps


def source_class(driver: str, name: str) -> type[Source]:
    """Import one source of a driver; raises ``SensorInvalid`` when it has none of that name."""
    sources = DRIVERS[driver]
    if name not in sources:
        raise SensorInvalid(
            f"the driver {driver!r} has no source {name!r}", hint=f"its sources are {', '.join(sources)}"
        )
    module, _, noun = sources[name].partition(":")
    kind: type[Source] = getattr(import_module(module), noun)
    return kind


def _check_channels(channels: tuple[str, ...]) -> None:
    for channel in channels:
        try:
            msgspec.convert(channel, p.Channel)
        except msgspec.ValidationError as error:
            raise SensorInvalid(f"{channel!r} is no channel: {error}", hint="give the sensor a shorter name") from error
