"""The lazy sequence over window and pages: it equals the log, wherever the entries come from."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi import link
from runtime.abi.errors import BrainLost, StorageFailed, to_wire
from runtime.brain.history import Session
from runtime.brain.pages import Pages
from runtime.brain.window import Window


@pytest.fixture(scope="module")
def log(small_kernel):
    log = small_kernel.SmallLog()
    for number in range(1000):
        source = {"channel": f"c{number % 3}"}
        log.admit("cognet:stimulus:field", {"source": source, "reading": {"value": float(number)}})
    return log


@pytest.fixture(scope="module")
def entries(log):
    return log.entries()


@pytest.fixture(scope="module")
def pages(log):
    mine, theirs = socket.socketpair()
    thread = log.serve_pages(theirs)
    pages = Pages(mine)
    yield pages
    pages.close()
    thread.join(20)


@pytest.fixture(scope="module")
def session_with(log, pages):
    def make(resident: int, *, first_seq: int = 1) -> Session:
        window = Window(capacity=max(1, resident), log_end=log.last_seq)
        for row in log.rows[log.last_seq - resident :] if resident else []:
            window.append(row.seq, row.body)
        return Session(window=window, pages=pages, first_seq=first_seq)

    return make


@pytest.mark.parametrize("after", [None, -1, 0])
def test_all_of_them_begin_at_the_first(session_with, entries, after):
    assert list(session_with(100).get(after=after)) == entries


@given(resident=st.integers(0, 1000), after=st.integers(-5, 1100), upto=st.none() | st.integers(-5, 1100))
def test_any_range_equals_the_log_however_much_is_resident(session_with, entries, resident, after, upto):
    history = session_with(resident).get(after=after, upto=upto)
    expected = [e for e in entries if e.seq > after and (upto is None or e.seq <= upto)]
    assert len(history) == len(expected)
    assert list(history) == expected
    assert history == expected


@given(st.integers(0, 1000), st.integers(-1100, 1100) | st.slices(1000))
def test_an_index_or_slice_is_that_of_the_list(session_with, entries, resident, index):
    history = session_with(resident).get()
    try:
        expected = entries[index]
    except IndexError:
        with pytest.raises(IndexError):
            history[index]
    else:
        got = history[index]
        assert (list(got) if isinstance(index, slice) else got) == expected


def test_two_readers_at_once_share_the_socket(session_with, entries):
    session = session_with(0)
    pairs = list(zip(session.get(), session.get(after=300), strict=False))
    assert [first for first, _ in pairs] == entries[:700]
    assert [second for _, second in pairs] == entries[300:]


def test_a_reader_that_left_early_disturbs_nobody(session_with, entries):
    session = session_with(0)
    next(iter(session.get()))
    assert list(session.get(after=500)) == entries[500:]


def test_reading_backwards_takes_few_pages(session_with, entries, log):
    before = log.pages_served
    assert list(reversed(session_with(0).get())) == entries[::-1]
    assert log.pages_served - before <= 1000 // link.PAGE_ENTRIES + 1


def test_what_is_resident_needs_no_page(session_with, log):
    before = log.pages_served
    assert len(list(session_with(200).get(after=800))) == 200
    assert log.pages_served == before


def test_a_window_that_moves_on_while_reading_loses_nothing(log, entries, pages):
    window = Window(capacity=300, log_end=0)
    for row in log.rows[:600]:
        window.append(row.seq, row.body)
    rest = iter(log.rows[600:])
    found = []
    for entry in Session(window=window, pages=pages, first_seq=1).get(after=300):
        found.append(entry)
        for row in (next(rest, None), next(rest, None)):
            if row is not None:
                window.append(row.seq, row.body)
    assert found == entries[300:600]


class Retiring:
    """A small log of which entries can be retired: it tells of them as the real one does."""

    def __init__(self, small_kernel, log):
        self._served = log.page
        self.small = small_kernel.SmallLog()
        self.small.rows = log.rows
        self.small.page = self.page
        self.last_retired = 0
        self.told = next(row.body for row in small_kernel_rows(small_kernel))

    def page(self, request):
        if request.after >= self.last_retired:
            return self._served(request)
        seq = min(self.last_retired, request.upto)
        return link.Page(seq, 1, b"[%b]" % self.told) if seq > request.after else link.Page(request.after + 1, 0)


def small_kernel_rows(small_kernel):
    log = small_kernel.SmallLog()
    log.admit("axon:system:message", {"type": "retention", "text": "gone", "facts": {}})
    return log.rows


@pytest.fixture
def retiring(small_kernel, log):
    retiring = Retiring(small_kernel, log)
    mine, theirs = socket.socketpair()
    thread = retiring.small.serve_pages(theirs)
    window = Window(capacity=100, log_end=log.last_seq)
    for row in log.rows[-100:]:
        window.append(row.seq, row.body)
    pages = Pages(mine)
    retiring.session = Session(window=window, pages=pages, first_seq=1)
    yield retiring
    pages.close()
    thread.join(20)


def seqs_of(history):
    return [entry.seq for entry in history]


@pytest.mark.parametrize("retired", [1, 256, 400, 950])
def test_what_was_retired_is_told_in_its_place_while_the_brain_runs(retiring, entries, retired):
    session = retiring.session
    assert list(session.get()) == entries
    retiring.last_retired = retired
    session.retire(retired + 1)
    history = session.get()
    assert history[0].data.type == "retention"
    assert len(history) == len(entries) - retired + 1
    assert seqs_of(history) == list(range(retired, 1001))
    assert list(history)[1:] == entries[retired:]
    assert list(session.get(after=retired)) == entries[retired:]
    assert history[1] == entries[retired]


def test_a_range_that_was_retired_whole_is_told_and_not_cheated(retiring):
    retiring.last_retired = 500
    retiring.session.retire(501)
    history = retiring.session.get(after=100, upto=200)
    assert [(entry.seq, entry.data.type) for entry in history] == [(200, "retention")]
    assert history[0].data.type == "retention"


def test_a_reader_in_the_middle_of_what_is_retired_goes_on_behind_it(retiring, entries):
    reading = iter(retiring.session.get())
    assert [next(reading) for _ in range(256)] == entries[:256]
    retiring.last_retired = 700
    rest = list(reading)
    told = [entry for entry in rest if entry.type == "axon:system:message"]
    assert [entry.seq for entry in told] == [700]
    assert rest[-300:] == entries[700:]


def test_reads_are_counted(session_with):
    session = session_with(100)
    list(session.get(after=850))
    assert session.reads.count == 150


def test_a_lost_kernel_is_told(log):
    mine, theirs = socket.socketpair()
    theirs.close()
    session = Session(window=Window(capacity=1, log_end=10), pages=Pages(mine), first_seq=1)
    with pytest.raises(BrainLost):
        list(session.get())
    mine.close()


def test_the_kernels_error_reaches_the_reader(small_kernel):
    mine, theirs = socket.socketpair()
    failing = small_kernel.SmallLog()
    failing.page = lambda request: link.Page(1, 0, error=to_wire(StorageFailed("the card is gone")))
    failing.serve_pages(theirs)
    session = Session(window=Window(capacity=1, log_end=10), pages=Pages(mine), first_seq=1)
    with pytest.raises(StorageFailed, match="the card is gone"):
        list(session.get())
    mine.close()
