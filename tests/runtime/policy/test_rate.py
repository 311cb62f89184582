from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.rate import Rate

S = 1_000_000


def taken(rate: Rate, *times_us: int) -> list[bool]:
    return [rate.take(now) for now in times_us]


def test_all_of_a_burst_may_come_at_once():
    assert taken(Rate(3, per_s=1), 0, 0, 0, 0) == [True, True, True, False]


def test_a_smaller_burst_spaces_them():
    assert taken(Rate(2, per_s=1, burst=1), 0, S // 2 - 1, S // 2) == [True, False, True]


def test_a_burst_may_be_larger_than_a_period_brings():
    assert taken(Rate(1, per_s=60, burst=2), 0, 0, 0, 60 * S, 60 * S) == [True, True, False, True, False]


def test_what_was_refused_costs_nothing():
    assert taken(Rate(1, per_s=1), 0, 1, 2, 3, S) == [True, False, False, False, True]


@given(st.integers(1, 50), st.sampled_from([1, 60]), st.integers(1, 20), st.lists(st.integers(0, 10**7), max_size=200))
def test_in_any_time_no_more_pass_than_burst_and_rate_together(count, per_s, burst, steps):
    rate, now, passed = Rate(count, per_s=per_s, burst=burst), 0, []
    for step in steps:
        now += step
        if rate.take(now):
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            elapsed = passed[last] - passed[first]
            assert last - first + 1 <= burst + elapsed * count / (per_s * S) + 1e-6
