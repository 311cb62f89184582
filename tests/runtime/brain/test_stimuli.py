"""The inbox gives each stimulus once and stays bounded; the mask selects what wakes."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi import link
from runtime.brain.history import Session
from runtime.brain.pages import Pages
from runtime.brain.stimuli import Inbox, Mask
from runtime.brain.window import Window

FIELD = "cognet:stimulus:field"


def field(small_kernel, value: float, channel: str = "c") -> bytes:
    return small_kernel.body_of(FIELD, {"source": {"channel": channel}, "reading": {"value": value}})


@pytest.fixture
def boxes(small_kernel):
    """Make an inbox over a log that is served, and a way to admit into both."""
    opened = []

    def make(capacity: int):
        log = small_kernel.SmallLog()
        mine, theirs = socket.socketpair()
        log.serve_pages(theirs)
        pages = Pages(mine)
        opened.append(pages)
        window = Window(capacity=capacity, log_end=0)
        inbox = Inbox(window=window, session=Session(window=window, pages=pages, first_seq=1), cursor=0)

        def admit(value: float | None) -> None:
            if value is None:
                row = log.admit("cognet:output:field", {"channel": "steer", "reading": {"value": 0}})
            else:
                row = log.admit(FIELD, {"source": {"channel": "c"}, "reading": {"value": value}})
            window.append(row.seq, row.body)
            inbox.add(row)

        return inbox, admit

    yield make
    for pages in opened:
        pages.close()


def values(stimuli) -> list[float]:
    return [entry.data.reading.value for entry in stimuli]


@given(capacity=st.integers(1, 12), steps=st.lists(st.sampled_from(["stimulus", "output", "take"]), max_size=60))
def test_every_stimulus_is_given_once_in_order_however_small_the_window(small_kernel, capacity, steps):
    log = small_kernel.SmallLog()
    mine, theirs = socket.socketpair()
    log.serve_pages(theirs)
    pages = Pages(mine)
    window = Window(capacity=capacity, log_end=0)
    inbox = Inbox(window=window, session=Session(window=window, pages=pages, first_seq=1), cursor=0)
    given_out, admitted = [], []
    for step in [*steps, "take"]:
        if step == "take":
            stimuli = inbox.take()
            taken = values(stimuli)
            assert len(stimuli) == len(taken)
            assert values(stimuli[:]) == taken
            given_out += taken
            continue
        if step == "stimulus":
            admitted.append(float(len(admitted)))
            row = log.admit(FIELD, {"source": {"channel": "c"}, "reading": {"value": admitted[-1]}})
        else:
            row = log.admit("cognet:output:field", {"channel": "steer", "reading": {"value": 0}})
        window.append(row.seq, row.body)
        inbox.add(row)
    pages.close()
    assert given_out == admitted


def test_transient_stimuli_come_in_their_place(boxes, small_kernel):
    inbox, admit = boxes(10)
    admit(1.0)
    inbox.add(link.Row(0, FIELD, field(small_kernel, 1.5)))
    admit(2.0)
    stimuli = inbox.take()
    assert values(stimuli) == [1.0, 1.5, 2.0]
    assert [entry.seq for entry in stimuli] == [1, 0, 2]


def test_transient_stimuli_nobody_takes_are_bounded_and_counted(boxes, small_kernel):
    inbox, admit = boxes(5)
    for number in range(20):
        inbox.add(link.Row(0, FIELD, field(small_kernel, float(number))))
        admit(None)
    assert values(inbox.take()) == [15.0, 16.0, 17.0, 18.0, 19.0]
    assert (inbox.take_lost(), inbox.take_lost()) == (15, 0)


def test_a_flood_of_transient_stimuli_alone_is_bounded(boxes, small_kernel):
    inbox, _ = boxes(5)
    for number in range(20):
        inbox.add(link.Row(0, FIELD, field(small_kernel, float(number))))
    assert values(inbox.take()) == [15.0, 16.0, 17.0, 18.0, 19.0]
    assert (inbox.take_lost(), inbox.take_lost()) == (15, 0)


@pytest.mark.parametrize(
    ("wake_on", "channel", "selected"),
    [
        (["field"], "a", True),
        (["field:a"], "a", True),
        (["field:a"], "b", False),
        (["text"], "a", False),
        (["text", "field:b", "field:a"], "a", True),
        ([], "a", False),
    ],
)
def test_a_mask_selects_by_kind_or_kind_and_channel(small_kernel, wake_on, channel, selected):
    mask = Mask(wake_on)
    log = small_kernel.SmallLog()
    row = log.admit(FIELD, {"source": {"channel": channel}, "reading": {"value": 1}})
    assert mask.selects(row.type, row.body) is selected
    assert mask.selects_entry(log.entries()[0]) is selected


def test_a_mask_never_selects_an_output(small_kernel):
    log = small_kernel.SmallLog()
    row = log.admit("cognet:output:text", {"channel": "a", "content": "hi"})
    mask = Mask(["text", "text:a"])
    assert not mask.selects(row.type, row.body)
    assert not mask.selects_entry(log.entries()[0])
