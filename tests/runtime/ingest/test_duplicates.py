"""Counters: each stimulus once, holes told, epochs that replace each other, and what is confirmed when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.marks import Mark


def test_what_comes_again_is_a_duplicate(world: Any) -> None:
    assert [world.field(seq=seq).outcome for seq in (1, 2, 2, 1, 3)] == [
        "admitted",
        "admitted",
        "duplicate",
        "duplicate",
        "admitted",
    ]
    assert world.ingest.counts["imu"].duplicates == 2


def test_a_hole_is_a_gap_and_moves_the_mark(world: Any) -> None:
    world.field(seq=1)
    gap = world.field(seq=5).gap
    assert (gap.channel, gap.epoch, gap.first, gap.last, gap.told) == ("imu", "e1", 2, 4, False)
    assert world.field(seq=3).outcome == "duplicate"
    assert (world.ingest.counts["imu"].gaps, len(world.events("kernel:ingest:gap"))) == (1, 1)


def test_what_an_epoch_lost_before_its_first_message_is_a_gap(world: Any) -> None:
    gap = world.field(seq=4).gap
    assert (gap.first, gap.last) == (1, 3)


@pytest.mark.parametrize("first", [0, 1])
def test_an_epoch_may_count_from_zero_or_one(world: Any, first: int) -> None:
    taken = world.field(seq=first)
    assert (taken.outcome, taken.gap) == ("admitted", None)
    assert world.field(seq=first + 1).outcome == "admitted"


def test_two_ids_on_one_channel_count_apart(world: Any) -> None:
    assert [world.field(seq=1, id_=id_).outcome for id_ in ("left", "right", "left")] == [
        "admitted",
        "admitted",
        "duplicate",
    ]


def test_one_id_on_two_channels_counts_apart(world: Any) -> None:
    assert [world.field(channel, seq=1, id_="a").outcome for channel in ("x", "y")] == ["admitted"] * 2


def test_a_new_epoch_takes_over(world: Any) -> None:
    world.field(seq=7, epoch="old")
    assert world.field(seq=1, epoch="new").outcome == "admitted"
    assert world.field(seq=7, epoch="old").outcome == "duplicate"


def test_one_id_with_two_live_epochs_is_refused(world: Any) -> None:
    world.field(seq=1, epoch="old")
    world.field(seq=1, epoch="new")
    taken = world.field(seq=2, epoch="old")
    assert (taken.outcome, taken.error.code) == ("refused", "SOURCE_CONFLICT")
    assert world.field(seq=2, epoch="new").outcome == "admitted"


def test_the_mark_goes_with_the_entry(world: Any) -> None:
    world.field(seq=1, id_="left")
    world.field(seq=4, id_="left")
    assert list(world.log.marks.values()) == [Mark(channel="imu", source_id="left", epoch="e1", high=4)]


def test_marks_that_the_log_held_go_on(make_world: Any) -> None:
    marks = (
        Mark(channel="imu", source_id="", epoch="old", high=9, retired=True),
        Mark(channel="imu", source_id="", epoch="e1", high=4),
    )
    world = make_world(marks=marks)
    assert world.field(seq=4).outcome == "duplicate"
    assert world.field(seq=9, epoch="old").outcome == "duplicate"
    assert world.field(seq=10, epoch="old").error.code == "SOURCE_CONFLICT"
    assert world.field(seq=5).gap is None


def test_the_later_of_two_live_marks_is_the_live_one(make_world: Any) -> None:
    """So a log that retires lazily is read right too."""
    world = make_world(marks=tuple(Mark(channel="imu", source_id="", epoch=epoch, high=3) for epoch in ("b", "a")))
    assert world.field(seq=4, epoch="b").error.code == "SOURCE_CONFLICT"
    assert world.field(seq=4, epoch="a").outcome == "admitted"


# -- confirmations ------------------------------------------------------------------------------------------


def test_only_what_is_durable_is_confirmed_and_once(world: Any) -> None:
    for seq in (1, 2, 3):
        world.field(seq=seq)
    assert world.committed(0) == []
    assert world.committed(2) == [("imu", None, "e1", 2)]
    assert world.committed(2) == []
    assert world.ingest.counts["imu"].committed == 2
    assert world.committed(3) == [("imu", None, "e1", 3)]


def test_a_duplicate_is_confirmed_again(world: Any) -> None:
    world.field(seq=1)
    world.committed()
    world.field(seq=1)
    assert world.committed() == [("imu", None, "e1", 1)]


def test_a_duplicate_of_what_is_not_durable_confirms_nothing(world: Any) -> None:
    world.field(seq=1)
    world.field(seq=1)
    assert world.committed(0) == []


def test_a_stimulus_without_a_counter_confirms_nothing(world: Any) -> None:
    world.field()
    assert world.committed() == []
    assert world.ingest.counts["imu"].committed == 1


def test_a_refused_stimulus_is_never_confirmed(world: Any) -> None:
    world.raw("field", "imu", b'{"reading":{"value":NaN},"captured":{"epoch":"e1","ms":1,"seq":1}}')
    assert world.committed() == []


def test_an_epoch_that_was_replaced_is_still_confirmed(world: Any) -> None:
    world.field(seq=1, epoch="old")
    world.field(seq=1, epoch="new")
    assert world.committed() == [("imu", None, "old", 1), ("imu", None, "new", 1)]


def test_after_a_start_the_live_marks_are_confirmed(make_world: Any) -> None:
    world = make_world(marks=(Mark(channel="imu", source_id="left", epoch="e1", high=4),))
    assert world.committed(0) == [("imu", "left", "e1", 4)]


# -- any order ------------------------------------------------------------------------------------------------

Sent = st.tuples(st.sampled_from("ab"), st.sampled_from(["e1", "e2", "e3"]), st.integers(0, 12), st.booleans())


@given(st.lists(Sent, max_size=60))
def test_nothing_is_admitted_twice_and_marks_match_the_log(
    make_world: Any, sent: list[tuple[str, str, int, bool]]
) -> None:
    """Whatever comes in whatever order, also when the kernel starts again from the log's marks in between."""
    world = make_world()
    rows: list[tuple[str, str, int]] = []
    for id_, epoch, seq, restart in sent:
        if restart:
            world = make_world(log=world.log)
        before = dict(world.log.marks)
        taken = world.field(seq=seq, epoch=epoch, id_=id_)
        mark = before.get(("imu", id_, epoch))
        if taken.outcome == "admitted":
            rows.append((id_, epoch, seq))
            assert mark is None or seq > mark.high
            assert world.log.marks["imu", id_, epoch].high == seq
            assert (taken.gap is not None) == (seq > (mark.high if mark else 0) + 1)
        else:
            assert world.log.marks == before
            assert taken.outcome == ("duplicate" if mark and seq <= mark.high else "refused")
    assert len(rows) == len(set(rows)) == len(world.log.rows)


@given(st.lists(st.tuples(st.sampled_from(["e1", "e2"]), st.integers(1, 9)), max_size=40), st.data())
def test_a_confirmation_never_says_more_than_is_durable(
    make_world: Any, sent: list[tuple[str, int]], data: st.DataObject
) -> None:
    world = make_world()
    counters: list[tuple[str, int]] = []  # by seq of the entry
    durable = 0
    for epoch, seq in sent:
        if world.field(seq=seq, epoch=epoch).outcome == "admitted":
            counters.append((epoch, seq))
        durable = data.draw(st.integers(durable, len(counters)))
        for _, _, said_epoch, said in world.committed(durable):
            assert (said_epoch, said) in counters[:durable]
