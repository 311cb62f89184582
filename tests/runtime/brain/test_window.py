"""The ring of raw bodies: what is resident, what fell out, and what the kernel may not send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.errors import FrameInvalid
from runtime.brain.window import Window


def body(seq: int) -> bytes:
    return f"body {seq}".encode()


def test_an_empty_window_knows_the_logs_end():
    window = Window(capacity=4, log_end=10)
    assert (window.first_seq, window.resident_upto, window.last_seq) == (11, 10, 10)
    assert window.bodies(10, 10) is None


def test_a_tail_may_start_anywhere_and_the_log_still_ends_where_it_ends():
    window = Window(capacity=4, log_end=10)
    window.append(8, body(8))
    assert (window.first_seq, window.resident_upto, window.last_seq) == (8, 8, 10)


def test_the_first_live_entry_replaces_a_tail_that_was_cut_short():
    window = Window(capacity=4, log_end=10)
    window.append(8, body(8))
    window.append(11, body(11))
    assert (window.first_seq, window.last_seq) == (11, 11)
    assert window.bodies(8, 8) is None


@pytest.mark.parametrize("seq", [9, 11, 13, 8])
def test_live_entries_must_follow_each_other(seq):
    window = Window(capacity=4, log_end=10)
    window.append(11, body(11))
    with pytest.raises(FrameInvalid):
        window.append(seq, body(seq))


@given(
    capacity=st.integers(1, 20),
    log_end=st.integers(0, 50),
    tail=st.integers(0, 30),
    live=st.integers(0, 60),
    first=st.integers(1, 130),
    count=st.integers(1, 30),
)
def test_a_range_is_either_exactly_right_or_not_resident(capacity, log_end, tail, live, first, count):
    window = Window(capacity=capacity, log_end=log_end)
    start = max(1, log_end - tail + 1)
    for seq in range(start, log_end + live + 1):
        window.append(seq, body(seq))
    found = window.bodies(first, first + count - 1)
    oldest = max(start, log_end + live - capacity + 1)
    resident = oldest <= first and first + count - 1 <= log_end + live
    assert found == ([body(seq) for seq in range(first, first + count)] if resident else None)
