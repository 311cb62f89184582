"""The spool's decisions: order, windows, resending, bounds, and that every counter is held, confirmed or a gap."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sensors.spool import Dropped, Spool, SpoolBounds, Spooled

ROOMY = SpoolBounds(max_count=1000, max_bytes=10_000, window_count=4, window_bytes=10_000)


def filled(count: int, bounds: SpoolBounds = ROOMY, *, transient: bool = False) -> Spool:
    spool = Spool(bounds, transient=transient)
    for seq in range(1, count + 1):
        spool.add(Spooled(seq=seq, payload=b"x"))
    return spool


def send_all(spool: Spool, now: float = 0.0) -> list[int]:
    sent = []
    while (item := spool.next(now)) is not None:
        sent.append(item.seq)
    return sent


def proven(count: int, bounds: SpoolBounds = ROOMY) -> Spool:
    """A spool whose kernel has confirmed number 1; the rest is unsent."""
    spool = filled(count, bounds)
    assert send_all(spool) == [1]
    spool.confirm(1, 0.0)
    return spool


def test_the_oldest_alone_until_the_kernel_has_answered() -> None:
    assert send_all(filled(3)) == [1]


def test_a_confirmation_opens_the_window() -> None:
    assert send_all(proven(10)) == [2, 3, 4, 5]


def test_each_confirmation_lets_as_many_follow() -> None:
    spool = proven(10)
    send_all(spool)
    spool.confirm(3, 0.1)
    assert send_all(spool) == [6, 7]


def test_the_window_is_bounded_by_bytes_too() -> None:
    spool = proven(10, SpoolBounds(window_bytes=2))
    assert send_all(spool) == [2, 3]


def test_what_is_confirmed_is_forgotten() -> None:
    spool = proven(3)
    send_all(spool)
    spool.confirm(3, 0.1)
    assert (len(spool), spool.size_bytes, spool.oldest) == (0, 0, None)


def test_a_confirmation_covers_what_was_not_sent_on_this_connection() -> None:
    spool = proven(4)
    send_all(spool)
    spool.rewind()
    spool.confirm(3, 0.1)
    assert send_all(spool) == [4]


def test_a_new_connection_begins_with_the_oldest_unconfirmed() -> None:
    spool = proven(4)
    send_all(spool)
    spool.confirm(2, 0.1)
    spool.rewind()
    assert send_all(spool) == [3]


def test_an_old_confirmation_proves_nothing() -> None:
    spool = proven(4)
    spool.rewind()
    send_all(spool)
    spool.confirm(1, 0.1)
    assert send_all(spool) == []


def test_silence_makes_it_begin_again() -> None:
    spool = proven(4)
    send_all(spool, 0.0)
    spool.check(ROOMY.patience_s - 0.1)
    assert send_all(spool) == []
    spool.check(ROOMY.patience_s)
    assert send_all(spool) == [2]


def test_nothing_under_way_is_no_silence() -> None:
    spool = proven(1)
    spool.check(1000.0)
    spool.add(Spooled(seq=2, payload=b"x"))
    spool.add(Spooled(seq=3, payload=b"x"))
    assert send_all(spool, 1000.0) == [2, 3]


def test_unanswered_probes_come_ever_more_rarely() -> None:
    spool, probes, now = filled(3), [], 0.0
    while now < 30:
        if send_all(spool, now):
            probes.append(now)
        now += 0.5
        spool.check(now)
    assert probes == [0, 1, 3, 7, 12, 17, 22, 27]


def test_a_refused_stimulus_does_not_block_those_behind_it() -> None:
    spool, sent, now = filled(5), list[int](), 0.0
    while 2 not in sent and now < 60:
        sent += send_all(spool, now)
        now += 0.5
        spool.check(now)
    assert sent == [1, 1, 1, 2]
    spool.confirm(2, now)
    assert send_all(spool, now) == [3, 4, 5]


def test_the_oldest_make_room_and_are_counted() -> None:
    spool = filled(7, SpoolBounds(max_count=3))
    assert (len(spool), spool.dropped_count, spool.oldest) == (3, 4, 5)
    assert spool.take_dropped() == [Dropped(first=1, last=4)]
    assert spool.take_dropped() == []


def test_bytes_are_bounded() -> None:
    spool = Spool(SpoolBounds(max_bytes=10))
    for seq in (1, 2, 3):
        spool.add(Spooled(seq=seq, payload=b"12345"))
    assert (spool.size_bytes, spool.oldest) == (10, 2)


def test_what_is_larger_than_the_spool_is_a_gap_itself() -> None:
    spool = Spool(SpoolBounds(max_bytes=10))
    spool.add(Spooled(seq=1, payload=b"x" * 11))
    assert spool.take_dropped() == [Dropped(first=1, last=1)]
    assert len(spool) == 0


def test_dropping_what_is_under_way_sends_no_more_to_an_absent_kernel() -> None:
    spool = proven(4, SpoolBounds(max_count=4, window_count=2))
    assert send_all(spool) == [2, 3]
    for seq in range(5, 50):
        spool.add(Spooled(seq=seq, payload=b"x"))
        assert send_all(spool) == []


def test_a_confirmation_of_what_was_dropped_here_is_progress() -> None:
    spool = proven(4, SpoolBounds(max_count=4, window_count=2))
    send_all(spool)
    for seq in range(5, 8):
        spool.add(Spooled(seq=seq, payload=b"x"))
    spool.confirm(3, 1.0)
    assert send_all(spool) == [4, 5]


def test_a_transient_stimulus_is_sent_once_and_forgotten() -> None:
    spool = filled(3, transient=True)
    assert send_all(spool) == [1, 2, 3]
    assert len(spool) == 0


def test_at_the_end_the_unsent_is_a_gap() -> None:
    spool = proven(10)
    send_all(spool)
    spool.drop_unsent()
    assert spool.take_dropped() == [Dropped(first=6, last=10)]
    assert spool.size_bytes == 4


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds = SpoolBounds(max_count=6, max_bytes=40, window_count=3, window_bytes=30, probe_count=2)
        self.spool = Spool(self.bounds)
        self.now = 0.0
        self.added = 0
        self.confirmed = 0
        self.ever_sent = 0
        self.last_of_pass = 0
        self.sent_since_answer = 0
        self.dropped: set[int] = set()

    @rule(size=st.integers(1, 45))
    def add(self, size: int) -> None:
        self.added += 1
        self.spool.add(Spooled(seq=self.added, payload=b"x" * size))
        for gap in self.spool.take_dropped():
            assert gap.first <= gap.last
            self.dropped |= set(range(gap.first, gap.last + 1))

    @rule()
    def send(self) -> None:
        item = self.spool.next(self.now)
        if item is None:
            return
        if item.seq <= self.last_of_pass:  # only a probe begins again, and with the oldest
            assert item.seq == self.spool.oldest
        assert item.seq > self.confirmed
        assert item.seq not in self.dropped
        self.last_of_pass = item.seq
        self.ever_sent = max(self.ever_sent, item.seq)
        self.sent_since_answer += 1
        assert self.sent_since_answer <= self.bounds.window_count

    @precondition(lambda self: self.ever_sent > 0)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(1, self.ever_sent))
        if seq > self.confirmed:
            self.sent_since_answer = max(self.last_of_pass - seq, 0) if self.last_of_pass else 0
        self.confirmed = max(self.confirmed, seq)
        self.spool.confirm(seq, self.now)
        # What the spool still counts as under way: sent in this pass, above the mark, and not dropped.
        held = range(seq + 1, self.last_of_pass + 1)
        self.sent_since_answer = min(self.sent_since_answer, len([s for s in held if s not in self.dropped]))

    @rule()
    def reconnect(self) -> None:
        self.spool.rewind()
        self.last_of_pass = self.sent_since_answer = 0

    @rule(seconds=st.floats(0.1, 10))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.spool.check(self.now)
        self.last_of_pass = self.sent_since_answer = 0  # perhaps it began again

    @invariant()
    def every_counter_has_its_place(self) -> None:
        oldest = self.spool.oldest or self.added + 1
        held = set(range(oldest, self.added + 1))
        assert len(self.spool) == len(held)
        assert set(range(1, self.added + 1)) == held | self.dropped | set(range(1, self.confirmed + 1))

    @invariant()
    def bounds_hold(self) -> None:
        assert len(self.spool) <= self.bounds.max_count
        assert self.spool.size_bytes <= self.bounds.max_bytes
        assert self.spool.dropped_count == len(self.dropped)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
