"""Telemetry in the log: with the entries' commits, bounded, never a sync of its own."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.telemetry import LogLine, TelemetryEvent
from runtime.log import narration
from runtime.log.log import Log
from runtime.log.narration import Narration
from runtime.log.reader import LogReader

FIELD = "cognet:stimulus:field"


def event(number: int, type_: str = "cognet:log:info") -> TelemetryEvent:
    return TelemetryEvent(type=type_, mono_us=number, after_seq=number, data=LogLine(message=str(number)))


@pytest.fixture(autouse=True)
def pack_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narration, "PACK_S", 0.0)


async def test_events_are_stored_with_a_commit_of_entries(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any]
) -> None:
    log = open_log(folder)
    log.start(asyncio.get_running_loop())
    for number in range(5):
        log.tell(event(number))
    log.admit(FIELD, reading(1))
    await asyncio.wait_for(log.durable(1), 30)
    found = list(LogReader(folder).telemetry())
    assert [one.mono_us for one in found] == [0, 1, 2, 3, 4]
    assert next(iter(LogReader(folder).telemetry(after_seq=3, limit=1))).after_seq == 3
    assert list(LogReader(folder).telemetry(types=["kernel:*"])) == []
    await log.close(clean=True)


async def test_events_alone_force_no_commit_and_the_end_takes_them_along(
    folder: Path, open_log: Callable[..., Log]
) -> None:
    log = open_log(folder)
    log.start(asyncio.get_running_loop())
    log.tell(event(1))
    assert log.commit_times() == []
    await log.close(clean=True)
    assert [one.mono_us for one in LogReader(folder).telemetry()] == [1]


async def test_the_oldest_rows_leave(folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any]) -> None:
    log = open_log(folder, telemetry_events=10)
    log.start(asyncio.get_running_loop())
    for number in range(30):
        log.tell(event(number))
        log.tell(event(number))
        log.admit(FIELD, reading(number))
        await asyncio.wait_for(log.durable(log.last_seq), 30)
    found = list(LogReader(folder).telemetry())
    assert [one.mono_us for one in found] == [number for number in range(25, 30) for _ in (0, 1)]
    await log.close(clean=True)


def test_what_finds_no_room_is_counted_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narration, "MAX_WAITING", 20_000)
    waiting = Narration(keep_events=10)
    for number in range(20_003):
        waiting.tell(event(number))
    packed = waiting.pack()
    assert waiting.dropped == 3
    assert packed[0].type == "kernel:telemetry:dropped"
    assert packed[0].data.facts == {"count": 3}
    assert packed[1].mono_us == 3


def test_a_failed_commit_puts_them_back_in_order() -> None:
    waiting = Narration(keep_events=10)
    waiting.tell(event(1))
    taken = waiting.pack()
    waiting.tell(event(2))
    waiting.put_back(taken)
    assert [one.mono_us for one in waiting.pack()] == [1, 2]
