"""What is a value for an actuator, and how far it may move: for any values at any times."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.errors import ActuatorRefused
from runtime.config.actuators import Actuator
from runtime.kernel.actuators.limits import Slew, acceptable, check_range

TTL_US = 500_000


def number(**changes: Any) -> Actuator:
    return Actuator(**({"driver": "mqtt", "channel": "steer", "safe": 0.0, "min": -1.0, "max": 1.0} | changes))


SWITCH = Actuator(driver="mqtt", channel="lamp", safe=False)


@pytest.mark.parametrize("value", [nan, inf, -inf, 10**400, True, "0.5", None, [0.5], {}, 1j])
def test_what_is_no_finite_number_is_refused(value: object) -> None:
    with pytest.raises(ActuatorRefused, match="finite number"):
        acceptable(number(), value, None)


@pytest.mark.parametrize("value", [0, 1, 1.0, "true", None])
def test_a_switch_takes_true_and_false_alone(value: object) -> None:
    with pytest.raises(ActuatorRefused, match="true or false"):
        acceptable(SWITCH, value, None)
    assert acceptable(SWITCH, True, None) is True


def test_a_whole_number_is_a_number() -> None:
    assert acceptable(number(), 1, None) == 1.0


@pytest.mark.parametrize(("ours", "theirs"), [("rad", "deg"), (None, "deg")])
def test_another_unit_is_refused(ours: str | None, theirs: str) -> None:
    with pytest.raises(ActuatorRefused, match="'deg'"):
        acceptable(number(unit=ours), 0.5, theirs)


@pytest.mark.parametrize("theirs", ["rad", None])
def test_its_own_unit_or_none_is_fine(theirs: str | None) -> None:
    assert acceptable(number(unit="rad"), 0.5, theirs) == 0.5


@pytest.mark.parametrize("value", [-1.01, 1.01, 1e300])
def test_where_a_range_refuses_it_names_it(value: float) -> None:
    with pytest.raises(ActuatorRefused, match="from -1 to 1"):
        check_range(number(), value)


def test_without_a_rate_a_value_is_limited_to_the_range() -> None:
    slew = Slew(number(), 0)
    assert [slew.limited(value, 1) for value in (-5.0, 0.3, 5.0)] == [-1.0, 0.3, 1.0]


def test_a_switch_has_no_range() -> None:
    assert Slew(SWITCH, 0).limited(True, 1) is True


def test_the_rate_counts_from_the_value_before() -> None:
    slew = Slew(number(max_rate=2.0), 0)
    first = slew.limited(1.0, 100_000)
    slew.sent(first, 100_000)
    assert first == pytest.approx(0.2)
    assert slew.limited(1.0, 150_000) == pytest.approx(0.3)
    assert slew.limited(-1.0, 150_000) == pytest.approx(0.1)


def test_a_long_rest_allows_no_leap() -> None:
    slew = Slew(number(max_rate=0.5), 0)
    assert slew.limited(1.0, 3600 * 10**6) == pytest.approx(0.25)  # of half a second


def test_after_its_time_a_value_counts_as_the_safe_one() -> None:
    slew = Slew(number(max_rate=2.0), 0)
    slew.sent(0.9, 0)
    assert slew.limited(1.0, TTL_US + 100_000) == pytest.approx(0.2)


def test_an_actuator_that_rests_begins_from_there() -> None:
    slew = Slew(number(max_rate=2.0), 0)
    slew.sent(0.9, 0)
    slew.rested(100_000)
    slew.rested(190_000)  # it still does
    assert slew.limited(1.0, 200_000) == pytest.approx(0.2)


LIMITS = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted)
STEPS = st.lists(st.tuples(st.floats(-1e12, 1e12), st.integers(0, 2 * TTL_US), st.booleans()), min_size=1, max_size=30)


@given(LIMITS.filter(lambda ends: ends[0] < ends[2]), st.floats(1e-3, 1e6), STEPS)
def test_nothing_leaves_the_range_or_moves_faster(
    ends: list[float], rate: float, steps: list[tuple[float, int, bool]]
) -> None:
    """Beside an actuator that applies what is sent, rests when its time is over, and may rest at any moment."""
    low, safe, high = ends
    slew = Slew(number(min=low, max=high, safe=safe, max_rate=rate), 0)
    now, at, since, moving = 0, safe, 0, False
    for value, later, rests in steps:
        now += later
        if moving and now - since > TTL_US:
            at, since, moving = safe, since + TTL_US, False
        if rests:
            slew.rested(now)
            at, since, moving = (safe, now, False) if moving else (at, since, moving)
            continue
        sent = slew.limited(value, now)
        slew.sent(sent, now)
        assert low <= sent <= high
        assert abs(sent - at) <= rate * min(now - since, TTL_US) / 1e6 + 1e-9 * max(abs(low), abs(high), 1)
        at, since, moving = sent, now, True
