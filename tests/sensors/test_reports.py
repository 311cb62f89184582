"""Reports wait until they are published: ranges merge, counts add up, nothing is forgotten."""

from __future__ import annotations

from runtime.abi.envelope import GapReport, HealthReport
from sensors.reports import MOST_GAPS, Reports
from sensors.spool import Dropped


def reports() -> Reports:
    return Reports(channel="camera", source_id="left", epoch="e1")


def gap(first: int, last: int, channel: str = "camera") -> GapReport:
    return GapReport(channel=channel, id="left", epoch="e1", first=first, last=last)


def test_ranges_that_touch_are_one_gap() -> None:
    box = reports()
    box.add_gaps("camera", [Dropped(first=1, last=3)])
    box.add_gaps("camera", [Dropped(first=4, last=9), Dropped(first=20, last=20)])
    assert box.take() == [gap(1, 9), gap(20, 20)]


def test_channels_have_gaps_of_their_own() -> None:
    box = reports()
    box.add_gaps("a", [Dropped(first=1, last=3)])
    box.add_gaps("b", [Dropped(first=4, last=4)])
    box.add_gaps("a", [Dropped(first=4, last=5)])
    assert sorted(box.take(), key=str) == sorted([gap(1, 5, "a"), gap(4, 4, "b")], key=str)


def test_what_was_taken_is_gone_until_put_back() -> None:
    box = reports()
    box.add_gaps("camera", [Dropped(first=1, last=3)])
    box.add_health("late", count=2)
    taken = box.take()
    assert box.take() == []
    box.put_back(taken)
    assert box.take() == taken


def test_counts_of_one_state_add_up() -> None:
    box = reports()
    box.add_health("late", count=2)
    box.add_health("late", count=3)
    assert box.take() == [HealthReport(channel="camera", state="late", facts={"count": 5})]


def test_newer_facts_win_over_those_put_back() -> None:
    box = reports()
    box.add_health("late", count=2, why="old")
    taken = box.take()
    box.add_health("late", count=3, why="new")
    box.put_back(taken)
    assert box.take() == [HealthReport(channel="camera", state="late", facts={"count": 5, "why": "new"})]


def test_the_number_of_gaps_is_bounded_and_still_covers_all() -> None:
    box = reports()
    for index in range(3 * MOST_GAPS):
        box.add_gaps("camera", [Dropped(first=2 * index + 1, last=2 * index + 1)])
    taken = [report for report in box.take() if isinstance(report, GapReport)]
    assert len(taken) == MOST_GAPS
    assert taken[-1].last == 6 * MOST_GAPS - 1
