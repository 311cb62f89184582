"""The controller is a fold of the log: it settles, doesn't wind up, and is the same however it is folded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognets.pid.controller import Controller
from runtime.abi.entries import Entry, EntryContext, EntryTime, FieldStimulusEntry, TextStimulusEntry
from runtime.abi.payloads import FieldStimulus, Reading, Source, TextStimulus

STEP_US = 50_000


class Log:
    """Entries with consecutive seq, 50 ms apart."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.boot = "b1"
        self.skipped_us = 0

    def add(self, channel: str, value: Any) -> Entry:
        seq = len(self.entries) + 1
        envelope: dict[str, Any] = {
            "id": str(seq),
            "time": EntryTime(ms=0, mono_us=seq * STEP_US + self.skipped_us, seq=seq),
            "context": EntryContext(agent_id="a", session_id="s", boot_id=self.boot),
        }
        source = Source(channel=channel)
        entry: Entry
        if isinstance(value, str):
            entry = TextStimulusEntry(data=TextStimulus(source=source, content=value), **envelope)
        else:
            entry = FieldStimulusEntry(data=FieldStimulus(source=source, reading=Reading(value=value)), **envelope)
        self.entries.append(entry)
        return entry


def test_it_brings_a_plant_to_the_setpoint():
    log, controller, value = Log(), Controller(), 20.0
    controller.fold([log.add("person", "kp=0.2 ki=0.1 low=0 high=1"), log.add("setpoint", 40.0)])
    for _ in range(2000):
        controller.fold([log.add("measured", value)])
        value += 0.05 * (30 * controller.control - 0.5 * (value - 20))  # a heater, and a room that cools
    assert value == pytest.approx(40.0, abs=0.1)


def test_at_its_limit_it_does_not_wind_up():
    log, controller = Log(), Controller()
    controller.fold([log.add("person", "kp=1 ki=1 low=-1 high=1"), log.add("setpoint", 100.0)])
    for _ in range(500):
        controller.fold([log.add("measured", 0.0)])
    assert controller.control == 1.0
    assert controller.integral <= 1.0
    controller.fold([log.add("measured", 102.0)])
    assert controller.control == -1.0


def test_a_new_setpoint_gives_the_derivative_no_kick():
    log, controller = Log(), Controller()
    controller.fold([log.add("person", "kp=0 kd=1"), *(log.add("measured", 5.0) for _ in range(3))])
    controller.fold([log.add("setpoint", 90.0), log.add("measured", 5.0)])
    assert controller.control == 0.0


def test_nothing_is_integrated_over_a_gap_or_a_restart():
    log, controller = Log(), Controller()
    controller.fold([log.add("person", "kp=0 ki=1"), log.add("setpoint", 1.0), log.add("measured", 0.0)])
    log.skipped_us = 60_000_000
    controller.fold([log.add("measured", 0.0)])
    log.boot = "b2"
    controller.fold([log.add("measured", 0.0)])
    assert controller.integral == 0.0
    controller.fold([log.add("measured", 0.0)])
    assert controller.integral == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("please use KP = 2.5, thanks", "kp", 2.5),
        ("setpoint=-3e1", "setpoint", -30.0),
        ("kp=1e999", "kp", 1.0),
        ("low=5 high=2", "low", -1.0),
        ("skip=7", "kp", 1.0),
        ("kp=fast", "kp", 1.0),
    ],
)
def test_words_tell_gains_and_limits(words, field, value):
    log, controller = Log(), Controller()
    controller.fold([log.add("person", words)])
    assert getattr(controller, field) == value


VALUES = st.floats(-1e6, 1e6) | st.integers(-100, 100) | st.booleans() | st.just([1.0])
THINGS = st.lists(
    st.tuples(st.sampled_from(["setpoint", "measured", "other"]), VALUES)
    | st.tuples(st.just("person"), st.sampled_from(["kp=2", "ki=0.5 kd=1", "low=-2 high=3", "kp=1e300", "hello"])),
    max_size=40,
)


@given(THINGS, st.data())
def test_any_way_of_folding_and_any_checkpoint_give_the_same(things, data):
    log = Log()
    for channel, value in things:
        log.add(channel, value)
    whole = Controller()
    whole.fold(log.entries)
    pieces = Controller()
    for entry in log.entries:
        pieces.fold([entry])
        if data.draw(st.booleans()):
            pieces = Controller.from_checkpoint(pieces.to_checkpoint())
    assert pieces == whole
    assert whole.low <= whole.control <= whole.high


@pytest.mark.parametrize("saved", [None, 5, {}, {"kp": 1.0}, {"kp": 1.0, "more": 2}])
def test_a_checkpoint_that_cannot_be_used_costs_a_fold(saved):
    assert Controller.from_checkpoint(saved) == Controller()
