"""What is written down: bounded, however many values are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from runtime.abi.clock import mono_us
from runtime.abi.errors import ActuatorAway, ActuatorRefused, AgentStopped
from runtime.kernel.actuators.record import ENTRY_EVERY_US, STARTING_US, Record

from .conftest import commander
from .test_commander import order


class Paper:
    """A record, and what it wrote."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.entries: list[dict[str, Any]] = []
        self.record = Record(tell=self._tell, record=self._write)
        self.now_us = mono_us() + STARTING_US

    def _tell(self, type_: str, data: msgspec.Struct) -> None:
        self.told.append((type_, data))

    def _write(self, kind: str, text: str, **facts: Any) -> None:
        self.entries.append({"kind": kind, "text": text, **facts})

    def refuse(self, error: Any, *, later_us: int = 1000, name: str = "steer") -> None:
        self.now_us += later_us
        self.record.refused(name, error, seq=9, now_us=self.now_us)

    def send(self, asked: float = 0.5) -> None:
        command = commander().command(order(), 0)
        self.record.sent("steer", command, asked=asked)


@pytest.fixture
def paper() -> Paper:
    return Paper()


STOPPED = AgentStopped("steer: the emergency stop is latched by ann")


def test_a_refusal_that_goes_on_for_days_is_one_entry(paper: Paper) -> None:
    for _ in range(1000):
        paper.refuse(STOPPED, later_us=ENTRY_EVERY_US)
    (entry,) = paper.entries
    assert entry["kind"] == "actuator"
    assert (entry["actuator"], entry["code"], entry["seq"]) == ("steer", "STOPPED", 9)


def test_one_that_comes_and_goes_is_an_entry_in_ten_seconds(paper: Paper) -> None:
    for _ in range(100):
        paper.refuse(STOPPED, later_us=ENTRY_EVERY_US // 50)
        paper.send()
    assert len(paper.entries) == 2
    assert paper.entries[1]["left_out"] == 49


def test_each_reason_and_each_actuator_has_its_own(paper: Paper) -> None:
    for _ in range(3):
        paper.refuse(STOPPED)
        paper.refuse(ActuatorRefused("steer: no"))
        paper.refuse(STOPPED, name="lamp")
    assert len(paper.entries) == 3


def test_a_flood_of_refusals_is_told_in_sums(paper: Paper) -> None:
    for _ in range(5000):
        paper.refuse(STOPPED, later_us=100)
    paper.record.flush(paper.now_us + 10**6)
    assert [type_ for type_, _ in paper.told] == ["kernel:actuator:refused"] * 2
    assert sum(data.count for _, data in paper.told) == 5000


def test_what_isnt_there_yet_at_the_start_is_no_entry(paper: Paper) -> None:
    paper.now_us -= STARTING_US
    paper.refuse(ActuatorAway("steer: its driver isn't heard"))
    assert paper.entries == []
    paper.refuse(ActuatorAway("steer: its driver isn't heard"), later_us=STARTING_US)
    assert len(paper.entries) == 1


def test_a_command_tells_what_was_asked_where_a_limit_changed_it(paper: Paper) -> None:
    paper.send(asked=0.5)
    paper.send(asked=9.0)
    assert [(data.value, data.asked) for _, data in paper.told] == [(0.5, None), (0.5, 9.0)]


def test_modes_are_told_when_they_change_and_not_in_a_flood(paper: Paper) -> None:
    for number in range(1000):
        paper.record.mode("steer", "moving" if number % 2 else "safe", why="", now_us=paper.now_us + number * 100)
    assert len(paper.told) <= 3
