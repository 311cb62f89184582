"""Deadlines are absolute, and what was missed whole is skipped and counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensors.deadlines import Deadlines


def test_the_first_is_one_period_after_the_start() -> None:
    assert Deadlines(start=10.0, period_s=0.5).next(10.0) == (10.5, 0)


def test_lateness_does_not_shift_those_that_follow() -> None:
    deadlines = Deadlines(start=0.0, period_s=1.0)
    deadlines.next(0.0)
    assert deadlines.next(1.9) == (2.0, 0)


def test_less_than_a_period_late_is_caught_up() -> None:
    deadlines = Deadlines(start=0.0, period_s=1.0)
    assert deadlines.next(1.9) == (1.0, 0)
    assert deadlines.next(1.9) == (2.0, 0)


def test_periods_missed_whole_are_skipped() -> None:
    deadlines = Deadlines(start=0.0, period_s=1.0)
    assert deadlines.next(5.5) == (5.0, 4)
    assert deadlines.next(5.5) == (6.0, 0)


@given(st.floats(0.001, 10), st.lists(st.floats(0, 100), max_size=30))
def test_no_two_captures_share_a_period_and_none_is_lost_uncounted(period_s: float, waits: list[float]) -> None:
    deadlines, now, last, total = Deadlines(start=0.0, period_s=period_s), 0.0, 0.0, 0
    for wait in waits:
        now += wait
        due, missed = deadlines.next(now)
        total += 1 + missed
        assert due > last
        assert due == pytest.approx(total * period_s)
        now, last = max(now, due), due
