"""What a driver is started with: read strictly, and in step with what axon.toml may say."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.errors import SensorInvalid
from runtime.config import drivers as configured
from sensors.microphone.synthetic import SyntheticMicrophone
from sensors.sample import Source
from sensors.settings import DRIVERS, open_source, read_settings, source_class

LEAST = {"agent": "rover", "broker": {"host": "127.0.0.1", "port": 1883}, "channel": "ear"}
EVERY_SOURCE = [(driver, source) for driver, sources in DRIVERS.items() for source in sources]


def read(**more: Any) -> Any:
    return read_settings(json.dumps({**LEAST, **more}))


def test_what_is_not_a_drivers_is_the_sources() -> None:
    settings = read(fps=10, id="left", seed=3, rate=8000)
    assert (settings.fps, settings.id, settings.options) == (10, "left", {"seed": 3, "rate": 8000})


def test_without_a_source_the_first_is_taken() -> None:
    source, fps = open_source("microphone", read())
    assert isinstance(source, SyntheticMicrophone)
    assert (source.channels, fps) == (("ear",), 5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"fps": 0}, {"fps": -1}, {"fps": "fast"}, {"channel": "a/b"}, {"channel": ""}, {"agent": "#"},
        {"broker": {"host": 5}}, {"broker": None}, {"transient": "yes"}, {"parent": 0}, {"spool_count": 0},
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SensorInvalid):
        read(**wrong)


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60)))
def test_anything_else_is_refused(text: bytes | str) -> None:
    with pytest.raises(SensorInvalid):
        read_settings(text)


@pytest.mark.parametrize(
    ("driver", "wrong", "told"),
    [
        ("lidar", {}, "camera, host, microphone"),
        ("microphone", {"source": "images:*.jpg"}, "synthetic, wav"),
        ("microphone", {"sead": 3}, "seed, rate"),
        ("microphone", {"rate": "high"}, "rate"),
        ("host", {"channel": "h" * 60}, "shorter"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_what_can(driver: str, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(SensorInvalid) as caught:
        open_source(driver, read(**wrong))
    assert told in str(caught.value)


@pytest.mark.parametrize(("driver", "source"), EVERY_SOURCE)
def test_axon_toml_knows_the_same_options(driver: str, source: str) -> None:
    kind: type[Source] = source_class(driver, source)
    known = configured.DRIVERS[driver].keys_of(source) or configured.DRIVERS[driver].keys_of(f"{source}:path")
    assert known is not None
    names = [{field.name for field in msgspec.structs.fields(struct)} for struct in (known, kind.Options)]
    assert names[0] == names[1]


@pytest.mark.parametrize("driver", DRIVERS)
def test_axon_toml_knows_the_same_drivers_sources_and_defaults(driver: str) -> None:
    assert set(configured.DRIVERS) == set(DRIVERS)
    first = next(iter(DRIVERS[driver]))
    assert {source.rstrip(":") for source in configured.DRIVERS[driver].sources} == set(DRIVERS[driver])
    assert configured.DRIVERS[driver].source == first
    assert configured.DRIVERS[driver].fps == source_class(driver, first).default_fps
