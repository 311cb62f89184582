"""One ``[[sensors]]`` table: the keys every driver has, and those of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from runtime.config.document import Document, key_names, shown
from runtime.config.drivers import DRIVERS, Driver
from runtime.config.lines import Key
from runtime.config.sections import Sensor

_COMMON = [name for name in key_names(Sensor) if name != "options"]


def load_sensor(document: Document, key: Key, *, given: dict[str, Any], folder: Path) -> Sensor:
    """The sensor that the table at ``key`` describes; a relative path in ``source`` begins at the agent's folder."""
    name = given.get("driver")
    driver = DRIVERS.get(name) if isinstance(name, str) else None
    if driver is None:
        got = shown(name) if "driver" in given else "nothing"
        raise document.invalid((*key, "driver"), f"a driver: {', '.join(DRIVERS)}", got=got)
    source = given.get("source", driver.source)
    own = driver.keys_of(source) if isinstance(source, str) else None
    if own is None:
        raise document.invalid((*key, "source"), _sources(driver), got=shown(source))
    known = key_names(own)
    for word in given:
        if word not in _COMMON and word not in known:
            raise document.unknown((*key, word), _COMMON + known)
    defaults = {"channel": name, "source": driver.source, "fps": driver.fps}
    common = {word: value for word, value in given.items() if word in _COMMON}
    sensor = document.convert(key, defaults | common, Sensor)
    options = {word: given[word] for word in known if word in given}
    document.convert(key, options, own)
    return msgspec.structs.replace(sensor, source=_absolute(sensor.source, folder), options=options)


def _sources(driver: Driver) -> str:
    """The sources of a driver, in words."""
    return " or ".join(f'"{known}<path>"' if known.endswith(":") else f'"{known}"' for known in driver.sources)


def _absolute(source: str, folder: Path) -> str:
    """``images:photos/*.jpg`` with its path made absolute; a source without a path stays as it is."""
    scheme, colon, path = source.partition(":")
    return f"{scheme}:{folder / path}" if colon else source
