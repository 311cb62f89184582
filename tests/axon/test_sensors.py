"""What ``axon.toml`` may say about sensors is what the drivers take."""

import msgspec
import pytest

from hardware_profiles.profile import load
from runtime.abi.errors import ConfigInvalid
from runtime.config.agent import load_agent
from runtime.config.document import key_names
from runtime.config.drivers import DRIVERS
from sensors.settings import DRIVERS as REAL
from sensors.settings import source_class

PAIRS = [(driver, source) for driver in REAL for source in REAL[driver]]
VALUES = ["-1", "0", "1", "63", "64", "100", "101", "3999", "4000", "8192", "8193", "192000", "192001", '"/"', "true"]


def own_keys(driver: str, source: str):
    return DRIVERS[driver].keys_of(source) or DRIVERS[driver].keys_of(f"{source}:x")


def test_the_same_drivers_and_sources_are_known():
    assert {(d, s.rstrip(":")) for d in DRIVERS for s in DRIVERS[d].sources} == set(PAIRS)


@pytest.mark.parametrize("driver", REAL)
def test_the_source_without_a_word_is_the_drivers_own_first_one(driver):
    assert DRIVERS[driver].source == next(iter(REAL[driver]))


@pytest.mark.parametrize(("driver", "source"), PAIRS)
def test_a_source_has_the_drivers_rate_and_keys(driver, source):
    real = source_class(driver, source)
    assert DRIVERS[driver].fps == real.default_fps
    assert set(key_names(own_keys(driver, source))) == set(key_names(real.Options))


@pytest.mark.parametrize(("driver", "source"), PAIRS)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_accepted_here_exactly_when_the_driver_takes_it(tmp_path, driver, source, value):
    real = source_class(driver, source).Options
    written = source if DRIVERS[driver].keys_of(source) else f"{source}:x"
    for key in key_names(real):
        text = (
            f'format = 1\nagent.name = "r"\n[[sensors]]\ndriver = "{driver}"\nsource = "{written}"\n{key} = {value}\n'
        )
        (tmp_path / "axon.toml").write_text(text)
        try:
            (sensor,) = load_agent(tmp_path, load("generic-x86_64")).sensors
            here = sensor.options
        except ConfigInvalid:
            here = None
        try:
            msgspec.convert({key: msgspec.json.decode(value)}, real)
            there = True
        except msgspec.ValidationError:
            there = False
        assert (here is not None) == there, f"{driver} {source} {key} = {value}"
