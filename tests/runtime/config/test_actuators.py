"""``[actuators.<name>]``: what is read, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardware_profiles.profile import load
from runtime.abi.errors import ConfigInvalid
from runtime.config.actuators import MAX_ACTUATORS
from runtime.config.agent import AgentConfig, load_agent

GOOD = """\
format = 1
[agent]
name = "rover"

[actuators.steer]
driver = "simulated"
channel = "steer"
safe = 0
min = -1
max = 1
max_rate = 4.5
unit = "rad"
ttl_ms = 200
trace = "steer.jsonl"

[actuators.rear]
driver = "mqtt"
channel = "steer"
safe = 0.25
min = 0
max = 0.5

[actuators.lamp]
driver = "mqtt"
tool = "lamp.switch"
argument = "on"
safe = false
"""


def loaded(folder: Path, text: str, profile: str = "generic-x86_64") -> AgentConfig:
    (folder / "axon.toml").write_text(text)
    return load_agent(folder, load(profile))


def test_a_number_and_a_switch_are_read(tmp_path: Path) -> None:
    steer, _, lamp = loaded(tmp_path, GOOD).actuators.values()
    assert (steer.safe, steer.min, steer.max, steer.max_rate, steer.unit) == (0.0, -1.0, 1.0, 4.5, "rad")
    assert (steer.ttl_ms, steer.trace) == (200, str(tmp_path / "steer.jsonl"))
    assert (lamp.is_switch, lamp.ttl_ms, lamp.moved_by) == (True, 500, "tool lamp.switch, on")


def test_two_actuators_may_hang_on_one_channel(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD).actuators
    assert [name for name, each in found.items() if each.channel == "steer"] == ["steer", "rear"]


def test_without_tables_there_are_none(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'format = 1\nagent.name = "r"').actuators == {}


def test_every_value_tells_where_it_came_from(tmp_path: Path) -> None:
    origins = loaded(tmp_path, GOOD).origins
    assert origins["actuators.steer.max_rate"].source == "axon.toml:11"
    assert origins["actuators.lamp.ttl_ms"].source == "default"


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "expected"),
    [
        ('driver = "simulated"', "", 5, "actuators.steer.driver", "simulated"),
        ('driver = "simulated"', 'driver = "motor"', 6, "actuators.steer.driver", "simulated"),
        ('channel = "steer"\nsafe = 0\n', "safe = 0\n", 5, "actuators.steer", "either channel or tool"),
        ('channel = "steer"\nsafe = 0\n', 'channel = "a/b"\nsafe = 0\n', 7, "actuators.steer.channel", "letters"),
        ("safe = 0\n", "", 5, "actuators.steer.safe", "safe action"),
        ("safe = 0\n", 'safe = "off"\n', 8, "actuators.steer.safe", "safe action"),
        ("safe = 0\n", "safe = 2\n", 8, "actuators.steer.safe", "from min to max"),
        ("safe = 0\n", "safe = nan\n", 8, "actuators.steer.safe", "finite"),
        ("min = -1\n", "", 5, "actuators.steer.min", "nothing outside"),
        ("min = -1\n", "min = 1\n", 10, "actuators.steer.max", "more than min"),
        ("max = 1\n", "max = true\n", 10, "actuators.steer.max", "a number"),
        ("max_rate = 4.5", "max_rate = 0", 11, "actuators.steer.max_rate", "above 0"),
        ("ttl_ms = 200", "ttl_ms = 5", 13, "actuators.steer.ttl_ms", "from 20"),
        ("ttl_ms = 200", "ttl_s = 5", 13, "actuators.steer.ttl_s", "ttl_ms"),
        ('driver = "mqtt"\nchannel', 'driver = "mqtt"\ntrace = "x"\nchannel', 18, "actuators.rear.trace", "simulated"),
        ("[actuators.rear]", "[actuators.Steer]", 16, "actuators.Steer", "capitals"),
        ("[actuators.rear]", '[actuators."a/b"]', 16, "actuators.a/b", "letters"),
        ('"lamp.switch"', '"lamp"', 25, "actuators.lamp.tool", "module.member"),
        ('argument = "on"', "", 23, "actuators.lamp.argument", "parameter"),
        ('tool = "lamp.switch"', 'channel = "lamp"', 26, "actuators.lamp.argument", "beside tool"),
        ("safe = false", "safe = false\nmin = 0", 28, "actuators.lamp.min", "safe is a number"),
        ("safe = false", "safe = 0\nmin = 0\nmax = 1\nmax_rate = 1", 30, "actuators.lamp.max_rate", "beside channel"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_line_key_and_expectation(
    tmp_path: Path, old: str, new: str, line: int, key: str, expected: str
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigInvalid) as caught:
        loaded(tmp_path, GOOD.replace(old, new, 1))
    facts = caught.value.facts
    assert (facts["line"], facts["key"]) == (line, key)
    assert expected in facts["expected"]


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        loaded(tmp_path, 'format = 1\nagent.name = "r"\n[actuators]\nlamp = 3\n')
    assert (caught.value.facts["line"], caught.value.facts["key"]) == (4, "actuators.lamp")


def test_a_table_given_twice_is_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        loaded(tmp_path, GOOD.replace("actuators.rear", "actuators.steer"))
    assert caught.value.facts["line"] == 16


def test_a_value_must_outlive_the_commits_that_are_held(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"more than log\.commit_interval_ms, 200"):
        loaded(tmp_path, GOOD + "[log]\ncommit_interval_ms = 200\n")
    with pytest.raises(ConfigInvalid, match=r"more than log\.commit_interval_ms, 100"):
        loaded(tmp_path, GOOD.replace("ttl_ms = 200", "ttl_ms = 100"), "raspberry-pi-5")


RULE = '[policy."actuator.{0}"]\ndecision = "{1}"\n'


@pytest.mark.parametrize("rule", [("steer", "deny"), ("steer", "allow"), ("*", "escalate")])
def test_a_rule_about_an_actuator_is_read(tmp_path: Path, rule: tuple[str, str]) -> None:
    assert loaded(tmp_path, GOOD + RULE.format(*rule)).policy.rules


@pytest.mark.parametrize(
    ("name", "decision", "line", "expected"),
    [
        ("stear", "deny", 28, "the name of an actuator"),
        ("lamp", "deny", 28, "lamp.switch"),
        ("steer", "escalate", 29, "can't wait"),
    ],
)
def test_a_rule_that_nothing_would_ask_is_refused(
    tmp_path: Path, name: str, decision: str, line: int, expected: str
) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        loaded(tmp_path, GOOD + RULE.format(name, decision))
    assert caught.value.facts["line"] == line
    assert expected in caught.value.facts["expected"]


def test_there_is_an_end_to_their_number(tmp_path: Path) -> None:
    table = '[actuators.a{0}]\ndriver = "mqtt"\nchannel = "x"\nsafe = false\n'
    text = 'format = 1\nagent.name = "r"\n'
    assert len(loaded(tmp_path, text + "".join(map(table.format, range(MAX_ACTUATORS)))).actuators) == MAX_ACTUATORS
    with pytest.raises(ConfigInvalid, match="up to 64"):
        loaded(tmp_path, text + "".join(map(table.format, range(MAX_ACTUATORS + 1))))


KEYS = st.sampled_from(["driver", "channel", "tool", "argument", "safe", "min", "max", "ttl_ms", "unit", "zzz"])
VALUES = st.sampled_from(["0", "1.5", "-3", "true", '"mqtt"', '"a.b"', '"x"', "nan", "[]", "{}", "1e300", "9" * 40])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(KEYS, VALUES))
def test_no_table_does_more_than_be_refused(tmp_path: Path, keys: dict[str, str]) -> None:
    text = 'format = 1\nagent.name = "r"\n[actuators.a]\n' + "".join(
        f"{key} = {value}\n" for key, value in keys.items()
    )
    try:
        found = loaded(tmp_path, text).actuators["a"]
    except ConfigInvalid as error:
        line = error.facts["line"]
    else:
        line = 3
        assert found.is_switch or (found.min is not None and found.max is not None)
    assert 3 <= line <= text.count("\n") + 1
