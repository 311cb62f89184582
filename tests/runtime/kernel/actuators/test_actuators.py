"""All actuators of an agent, with a wire that keeps what would be sent: outputs, tools' calls, and the latch."""

from __future__ import annotations

import asyncio
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.actuators import Release, SetValue, Stop
from runtime.abi.clock import mono_us
from runtime.abi.errors import ActuatorAway, ActuatorRefused, AgentStopped
from runtime.abi.telemetry import Refused

from .conftest import state
from .rig import TABLE, Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_every_actuator_of_a_channel_gets_its_value_in_its_own_range(rig: Rig) -> None:
    rig.output(0.75)
    assert sorted(rig.wire.values()) == [("rear", 0.5), ("steer", 0.75)]


def test_of_what_becomes_durable_at_once_the_newest_goes_out(rig: Rig) -> None:
    rig.output(0.1, 0.2, 0.3)
    assert sorted(rig.wire.values()) == [("rear", 0.3), ("steer", 0.3)]


def test_a_value_of_another_kind_takes_no_good_ones_place(rig: Rig) -> None:
    rig.output(0.1, "left")
    assert sorted(rig.wire.values()) == [("rear", 0.1), ("steer", 0.1)]
    assert rig.entries == ["ACTUATOR_REFUSED"] * 2


def test_a_channel_that_moves_nothing_is_nobodys(rig: Rig) -> None:
    rig.output(0.1, channel="thought")
    assert (rig.wire.sent, rig.entries) == ([], [])


async def test_while_the_socket_is_full_only_the_newest_waits(rig: Rig) -> None:
    rig.wire.crowded = True
    for value in (0.1, 0.2, 0.3):
        rig.output(value, channel="steer")
    assert rig.wire.sent == []
    rig.wire.crowded = False
    async with asyncio.timeout(20):
        while len(rig.wire.sent) < 2:  # noqa: ASYNC110 - the actuators' own timer
            await asyncio.sleep(0.001)
    assert sorted(rig.wire.values()) == [("rear", 0.3), ("steer", 0.3)]


async def test_what_waits_when_a_stop_comes_never_goes_out(rig: Rig) -> None:
    rig.wire.crowded = True
    rig.output(0.1)
    rig.stop()
    rig.clear()
    rig.wire.crowded = False
    rig.output(0.2, channel="thought")
    await asyncio.sleep(0.02)  # longer than the timer that would send it
    assert rig.wire.values() == []


def test_without_a_broker_nothing_is_kept_for_later(rig: Rig) -> None:
    rig.wire.open = False
    rig.output(0.1)
    rig.wire.open = True
    rig.output(0.2, channel="thought")
    assert rig.wire.sent == []


def test_a_stop_goes_to_everybody_at_once(rig: Rig) -> None:
    rig.stop()
    assert {name for name, command in rig.wire.sent if isinstance(command, Stop) and command.stop == 1} == set(TABLE)


async def test_after_the_shutdown_began_nothing_is_sent_but_the_safe_action(rig: Rig) -> None:
    await rig.actuators.rest(0.001)
    rig.output(0.1)
    assert rig.wire.values() == []
    with pytest.raises(ActuatorAway):
        rig.actuators.called("arm.move", {"angle": 30})


# -- tools --------------------------------------------------------------------------------------------


def test_a_tools_call_goes_out_to_what_it_moves(rig: Rig) -> None:
    assert rig.actuators.permits("arm.move", {"angle": 30, "speed": 1}) is None
    assert rig.wire.sent == []
    rig.actuators.called("arm.move", {"angle": 30, "speed": 1})
    assert rig.wire.values() == [("arm", 30.0)]


@pytest.mark.parametrize("angle", [90.5, -1, nan, inf, "30", None, True, [30], 10**400])
def test_a_tools_value_out_of_range_is_refused_not_limited(rig: Rig, angle: object) -> None:
    assert isinstance(rig.actuators.permits("arm.move", {"angle": angle}), ActuatorRefused)
    with pytest.raises(ActuatorRefused):
        rig.actuators.called("arm.move", {"angle": angle})
    assert rig.wire.sent == []


def test_a_call_without_the_argument_is_refused(rig: Rig) -> None:
    assert isinstance(rig.actuators.permits("arm.move", {}), ActuatorRefused)


def test_while_stopped_a_tool_that_moves_something_is_refused_and_others_are_not(rig: Rig) -> None:
    rig.stop()
    refusal = rig.actuators.permits("arm.move", {"angle": 30})
    assert isinstance(refusal, AgentStopped)
    assert (refusal.code, refusal.facts["by"]) == ("STOPPED", "ann")
    assert rig.actuators.permits("arm.look", {}) is None
    assert rig.entries == ["STOPPED"]


def test_a_call_isnt_made_when_its_actuator_cant_be_told(rig: Rig) -> None:
    rig.wire.open = False
    with pytest.raises(ActuatorAway):
        rig.actuators.called("arm.move", {"angle": 30})


# -- what they tell -------------------------------------------------------------------------------------


def test_a_state_is_heard_and_one_that_cant_be_read_says_nothing(rig: Rig) -> None:
    rig.tell("steer", b'{"epoch": "new", "clock_ms": 1, "mode": "moving", "value": 0.5, "more": [1]}')
    for garbage in (b"", b"{", b"null", b"[" * 5000, b'{"epoch":"x"}', b'{"epoch":"x","clock_ms":-1,"mode":"safe"}'):
        rig.tell("steer", garbage)
    rig.tell("steer", b'{"epoch": "y", "clock_ms": 1, "mode": "safe", "why": "' + b"x" * 5000 + b'"}')
    rig.tell("steer", b'{"epoch": "z", "clock_ms": 1, "mode": "safe"}', retained=True)
    assert rig.actuators.states["steer"] == "moving"
    assert sum(data.count for data in rig.told if isinstance(data, Refused)) >= 1


@given(st.binary(max_size=200) | st.text(max_size=60).map(lambda text: f'{{"epoch":"e","mode":"{text}"}}'.encode()))
def test_no_bytes_do_more_than_be_counted(payload: bytes) -> None:
    rig = Rig()
    rig.tell("steer", payload)
    assert rig.actuators.states["steer"] in ("safe", "moving", "stopped", "gone")


def test_a_stop_that_nobody_here_knows_of_is_taken_over(rig: Rig) -> None:
    taken: list[tuple[int, str]] = []
    rig.actuators.adopt = lambda stop, name: taken.append((stop, name))
    rig.latch.know(4)
    rig.tell("steer", b'{"epoch": "e", "clock_ms": 1, "mode": "stopped", "stop": 4}')
    assert taken == []
    rig.tell("steer", b'{"epoch": "e", "clock_ms": 1, "mode": "stopped", "stop": 5}')
    assert taken == [(5, "steer")]


# -- any order of things ------------------------------------------------------------------------------

ACTS = st.one_of(
    st.tuples(
        st.just("output"), st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text(max_size=3)
    ),
    st.tuples(st.just("lamp"), st.booleans() | st.integers(0, 1)),
    st.tuples(st.just("tool"), st.floats() | st.integers() | st.none()),
    st.tuples(st.sampled_from(["stop", "clear", "state", "stopped"]), st.none()),
)


@given(st.lists(ACTS, max_size=30))
def test_whatever_happens_nothing_goes_out_while_latched_and_nothing_out_of_range(acts: list[tuple[str, Any]]) -> None:
    rig = Rig()
    for act, value in acts:
        before, latched = len(rig.wire.sent), rig.latch.latched
        if act == "output":
            rig.output(value)
        elif act == "lamp":
            rig.output(value, channel="lamp")
        elif act == "tool":
            if rig.actuators.permits("arm.move", {"angle": value}) is None:
                rig.actuators.called("arm.move", {"angle": value})
        elif act in ("stop", "clear"):
            rig.stop() if act == "stop" else rig.clear()
        else:
            mode = "safe" if act == "state" else "stopped"
            rig.actuators._commanders["steer"].heard(state(mono_us(), mode), mono_us())
        for name, command in rig.wire.sent[before:]:
            if latched and act != "clear":
                assert isinstance(command, Stop)
            elif isinstance(command, SetValue):
                _check(name, command.value)
            else:
                assert isinstance(command, Stop if act == "stop" else Release)


def _check(name: str, value: Any) -> None:
    bound = TABLE[name]
    assert type(value) is type(bound.safe)
    if bound.min is not None:
        assert bound.max is not None
        assert bound.min <= value <= bound.max
