"""What a run counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.summary import ChannelCounts
from runtime.kernel.statistics import Statistics, spread


def counts(received: int, committed: int, duplicates: int = 0, rejected: int = 0) -> dict[str, ChannelCounts]:
    return {
        "c": ChannelCounts(received=received, committed=committed, duplicates=duplicates, rejected=rejected, gaps=0)
    }


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_percentiles_are_values_that_were_measured_in_their_order(values: list[float]) -> None:
    found = spread(values)
    assert found.p50 is not None
    assert found.p99 is not None
    assert found.max is not None
    assert found.p50 <= found.p99 <= found.max == round(max(values), 3)
    assert {found.p50, found.p99} <= {round(value, 3) for value in values}


def test_nothing_measured_is_none_not_zero() -> None:
    assert spread([]).p99 is None


def test_what_was_under_way_when_counting_began_counts_as_before() -> None:
    statistics = Statistics()
    statistics.begin(counts(received=10, committed=7))
    assert statistics.stimuli(counts(received=15, committed=14), durable_seq=0) == counts(received=5, committed=4)


def test_what_was_admitted_until_the_end_counts_once_it_is_durable() -> None:
    statistics = Statistics()
    statistics.begin(counts(received=0, committed=0))
    statistics.finish(counts(received=9, committed=6, duplicates=1, rejected=1), last_seq=50)
    later = counts(received=20, committed=20)
    assert statistics.stimuli(later, durable_seq=49) == counts(received=9, committed=6, duplicates=1, rejected=1)
    assert statistics.stimuli(later, durable_seq=50) == counts(received=9, committed=7, duplicates=1, rejected=1)


def test_a_channel_that_was_silent_while_counting_is_left_out() -> None:
    statistics = Statistics()
    statistics.begin(counts(received=3, committed=3))
    assert statistics.stimuli(counts(received=3, committed=3), durable_seq=0) == {}


def test_wakes_after_the_end_count_for_nobody() -> None:
    statistics = Statistics()
    statistics.wakes.began(1, late_us=1000, overlap=2)
    statistics.finish({}, 0)
    statistics.wakes.began(2, late_us=9000, overlap=9)
    statistics.wakes.ended(1, "complete")
    statistics.wakes.skipped(3)
    wakes = statistics.wakes
    assert (wakes.admitted, wakes.completed, wakes.missed, wakes.max_overlap) == (1, 0, 0, 2)


def test_a_wake_that_was_open_when_counting_began_isnt_counted() -> None:
    statistics = Statistics()
    statistics.wakes.began(8, late_us=None, overlap=2)
    statistics.wakes.ended(7, "complete")
    statistics.wakes.ended(8, "interrupted")
    assert (statistics.wakes.completed, statistics.wakes.interrupted) == (0, 1)
