"""What an actuator obeys, decided with a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuators.guard import MAX_AHEAD_MS, Guard
from runtime.abi.actuators import Command, Release, SetValue, Stop, TakeSafe

NOW = 1_000_000


def guard(safe: Any = 0.0) -> Guard:
    return Guard(epoch="e", safe=safe)


def value(number: int, wanted: Any = 0.5, **changes: Any) -> SetValue:
    given: dict[str, Any] = {"boot": "b", "epoch": "e", "until_ms": NOW + 500, "id": f"c{number}"}
    return SetValue(number=number, value=wanted, **(given | changes))


def release(number: int, stop: int, **changes: Any) -> Release:
    return Release(number=number, stop=stop, **({"boot": "b", "epoch": "e", "until_ms": NOW + 500} | changes))


def stop(number: int, count: int = 1) -> Stop:
    return Stop(boot="b", number=number, stop=count)


def test_it_begins_in_the_safe_action() -> None:
    assert guard(0.25).state(NOW).mode == "safe"
    assert guard(0.25).state(NOW).value == 0.25


def test_a_value_holds_until_its_time_is_over() -> None:
    actuator = guard()
    assert actuator.take(value(1), NOW) == ""
    assert (actuator.mode, actuator.value) == ("moving", 0.5)
    assert not actuator.expire(NOW + 500)
    assert actuator.expire(NOW + 501)
    assert (actuator.mode, actuator.value) == ("safe", 0.0)
    assert not actuator.expire(NOW + 502)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (value(1, epoch="old"), "earlier start"),
        (value(1, until_ms=NOW - 7), "7 ms too late"),
        (value(1, until_ms=NOW + MAX_AHEAD_MS + 1), "is to hold for"),
        (value(1, wanted=True), "another kind"),
        (release(1, 0, epoch="old"), "earlier start"),
        (release(1, 0, until_ms=NOW - 1), "too late"),
    ],
)
def test_what_is_not_obeyed_is_counted_and_moves_nothing(command: Command, why: str) -> None:
    actuator = guard()
    assert why in actuator.take(command, NOW)
    state = actuator.state(NOW)
    assert (state.mode, state.refused) == ("safe", 1)
    assert why in state.why


def test_a_switch_takes_no_number() -> None:
    actuator = guard(safe=False)
    assert "another kind" in actuator.take(value(1, wanted=1.0), NOW)
    assert actuator.take(value(2, wanted=True), NOW) == ""


def test_a_command_that_comes_twice_or_after_a_newer_one_is_refused() -> None:
    actuator = guard()
    actuator.take(value(2), NOW)
    for number in (1, 2):
        assert "older" in actuator.take(value(number, 0.9), NOW)
    assert actuator.value == 0.5


def test_another_start_of_the_kernel_counts_from_one_again() -> None:
    actuator = guard()
    actuator.take(value(7), NOW)
    assert actuator.take(value(1, 0.9, boot="next"), NOW) == ""


def test_a_stop_is_obeyed_late_repeated_and_out_of_order() -> None:
    actuator = guard()
    actuator.take(value(9), NOW)
    assert actuator.take(stop(3), NOW + 10**9) == ""
    assert (actuator.mode, actuator.value, actuator.until_ms) == ("stopped", 0.0, None)
    assert actuator.take(stop(3), NOW) == ""


def test_while_stopped_nothing_moves_it() -> None:
    actuator = guard()
    actuator.take(stop(1), NOW)
    assert "emergency stop" in actuator.take(value(2), NOW)
    assert actuator.take(TakeSafe(boot="b", number=3), NOW) == ""
    assert actuator.mode == "stopped"
    actuator.rest()
    assert actuator.mode == "stopped"


def test_a_release_lets_new_values_through_and_no_older_ones() -> None:
    actuator = guard()
    actuator.take(stop(2), NOW)
    assert actuator.take(release(3, 1), NOW) == ""
    assert (actuator.mode, actuator.value, actuator.state(NOW).stop) == ("safe", 0.0, 0)
    assert "older" in actuator.take(value(1), NOW)
    assert actuator.take(value(4), NOW) == ""


def test_the_release_of_an_earlier_stop_frees_no_later_one() -> None:
    actuator = guard()
    actuator.take(stop(1, count=2), NOW)
    assert "came after it" in actuator.take(release(2, 1), NOW)
    assert actuator.mode == "stopped"


COMMANDS = st.one_of(
    st.builds(
        value,
        st.integers(0, 20),
        st.floats(-1, 1, allow_nan=False),
        boot=st.sampled_from("ab"),
        epoch=st.sampled_from("ex"),
        until_ms=st.integers(NOW - 100, NOW + 600),
    ),
    st.builds(stop, st.integers(0, 20), st.integers(1, 3)),
    st.builds(release, st.integers(0, 20), st.integers(0, 3), epoch=st.sampled_from("ex")),
    st.builds(TakeSafe, boot=st.just("b"), number=st.integers(0, 20)),
)


@given(st.lists(st.tuples(COMMANDS, st.integers(0, 300)), max_size=40))
def test_whatever_comes_it_moves_only_by_a_fresh_value_and_never_while_stopped(
    steps: list[tuple[Command, int]],
) -> None:
    actuator, now, held = guard(), NOW, 0
    for command, later in steps:
        now += later
        actuator.expire(now)
        before = actuator.mode
        obeyed = actuator.take(command, now) == ""
        if isinstance(command, Stop):
            held = max(held, command.stop)
            assert actuator.mode == "stopped"
        elif before == "stopped":
            freed = isinstance(command, Release) and obeyed
            assert actuator.mode == ("safe" if freed else "stopped")
            if freed:
                assert isinstance(command, Release)
                assert command.stop >= held
                held = 0
        elif actuator.mode == "moving" and obeyed:
            assert isinstance(command, SetValue)
            assert command.epoch == "e"
            assert command.until_ms >= now
        if actuator.mode != "moving":
            assert actuator.value == 0.0
