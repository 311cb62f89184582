"""What the log does when the disk answers with errors: no promise on an unknown outcome, the same bytes again."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.errors import LogBacklogFull, StorageFailed
from runtime.abi.link import Row
from runtime.durable.faults import Failing
from runtime.durable.space import Reserve
from runtime.log import log as log_module
from runtime.log import storage, writer
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.settings import Mark
from runtime.log.verify import verify
from runtime.media.ring import MemoryRing

FIELD = "cognet:stimulus:field"


class Plan:
    """Fails the operations of one kind on one file whose numbers are listed, or all while ``always``."""

    def __init__(self) -> None:
        self.operation, self.file, self.fault = "", "", ""
        self.numbers: set[int] = set()
        self.always = False
        self.count = 0

    def arm(self, operation: str, file: str, fault: str, *, numbers: set[int] | None = None) -> None:
        self.operation, self.file, self.fault, self.count = operation, file, fault, 0
        self.numbers, self.always = numbers or set(), numbers is None

    def disarm(self) -> None:
        self.numbers, self.always = set(), False

    def __call__(self, operation: str, file: str) -> str | None:
        if (operation, file) != (self.operation, self.file):
            return None
        self.count += 1
        return self.fault if self.always or self.count in self.numbers else None


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture(autouse=True)
def layer(plan: Plan) -> Iterator[Failing]:
    failing = Failing("axon-test-failing", plan)
    yield failing
    failing.close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(writer, "LONGEST_PAUSE_S", 0.05)


class Watched:
    """A log that remembers what it said: rows admitted, rows durable, states."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.admitted: list[Row] = []
        self.durable: list[Row] = []
        self.states: list[str] = []
        log.on_admitted = self.admitted.extend
        log.on_durable = self.durable.extend
        log.on_state = lambda state, _reason: self.states.append(state)
        log.start(asyncio.get_running_loop())

    def admit(self, reading: dict[str, Any]) -> Row:
        return self.log.admit(FIELD, reading)

    async def settled(self) -> None:
        await asyncio.wait_for(self.log.durable(self.log.last_seq), 30)


@pytest.mark.parametrize("fault", ["eio", "eio-after", "short"])
@pytest.mark.parametrize("operation", ["write", "sync"])
@pytest.mark.parametrize("at", [1, 2, 5, 8])
async def test_after_an_error_the_same_bytes_are_written_again(
    folder: Path,
    open_log: Callable[..., Log],
    reading: Callable[..., Any],
    plan: Plan,
    layer: Failing,
    operation: str,
    fault: str,
    at: int,
) -> None:
    watched = Watched(open_log(folder, vfs="axon-test-failing"))
    plan.arm(operation, "log.db-wal", fault, numbers={at})
    for value in range(8):
        watched.admit(reading(value))
        watched.admit(reading(-value))
        await watched.settled()
    assert layer.shown, "the fault never came"
    assert watched.states == ["recovering", "ok"]
    assert watched.durable == watched.admitted
    await watched.log.close(clean=True)
    assert list(LogReader(folder).rows()) == watched.admitted
    assert verify(folder).ok


async def test_nothing_is_acknowledged_while_the_outcome_is_unknown(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any], plan: Plan
) -> None:
    watched = Watched(open_log(folder, vfs="axon-test-failing"))
    plan.arm("sync", "log.db-wal", "eio-after")
    row = watched.admit(reading(1))
    with pytest.raises(StorageFailed):
        await watched.settled()
    assert watched.log.state == "failed"
    assert watched.durable == []
    with pytest.raises(StorageFailed):
        await watched.log.durable(row.seq)
    plan.disarm()
    await watched.log.close(clean=True)


async def test_a_failed_log_still_shows_what_was_admitted_and_resumes_by_itself(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any], plan: Plan
) -> None:
    watched = Watched(open_log(folder, vfs="axon-test-failing"))
    plan.arm("write", "log.db-wal", "eio")
    watched.admit(reading(1))
    with pytest.raises(StorageFailed):
        await watched.settled()
    watched.admit(reading(2))
    assert [row.seq for row in watched.log.recent(0)] == [1, 2]
    resumed = asyncio.Event()
    watched.log.on_state = lambda state, _reason: resumed.set() if state == "ok" else None
    plan.disarm()
    await asyncio.wait_for(resumed.wait(), 30)
    await watched.settled()
    assert watched.durable == watched.admitted
    await watched.log.close(clean=True)
    assert list(LogReader(folder).rows()) == watched.admitted


async def test_a_failed_log_refuses_more_than_memory_may_hold_and_keeps_room_for_outputs(
    folder: Path,
    open_log: Callable[..., Log],
    reading: Callable[..., Any],
    plan: Plan,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_module, "MAX_BACKLOG_BYTES", 2700)
    monkeypatch.setattr(log_module, "MAX_RESERVED_BACKLOG_BYTES", 6000)
    watched = Watched(open_log(folder, vfs="axon-test-failing"))
    plan.arm("write", "log.db-wal", "eio")
    for value in range(10):
        watched.admit(reading(value))
    with pytest.raises(LogBacklogFull):
        watched.admit(reading("x" * 200))
    before = watched.log.last_seq
    watched.log.admit("axon:interrupt", {"by": "person"}, reserve=True)
    assert watched.log.last_seq == before + 1
    plan.disarm()
    await watched.log.close(clean=True)


@pytest.mark.parametrize(("operation", "file"), [("write", "log.db"), ("sync", "log.db"), ("sync", "log.db-wal")])
async def test_an_error_in_a_checkpoint_costs_nothing(
    folder: Path,
    open_log: Callable[..., Log],
    reading: Callable[..., Any],
    plan: Plan,
    layer: Failing,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    file: str,
) -> None:
    monkeypatch.setattr(storage, "CHECKPOINT_PAGES", 6)
    watched = Watched(open_log(folder, vfs="axon-test-failing"))
    plan.arm(operation, file, "eio", numbers={3})
    for value in range(40):
        watched.admit(reading(value))
        await watched.settled()
    assert layer.shown
    assert watched.states[:2] == ["recovering", "ok"]
    await watched.log.close(clean=True)
    assert list(LogReader(folder).rows()) == watched.admitted == watched.durable
    assert verify(folder).ok


async def test_reads_that_fail_are_told_and_the_log_goes_on(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any], plan: Plan
) -> None:
    first = open_log(folder)
    first.start(asyncio.get_running_loop())
    for value in range(300):
        first.admit(FIELD, reading(value))
    await first.close(clean=True)
    watched = Watched(open_log(folder, vfs="axon-test-failing", window_entries=2))
    plan.arm("read", "log.db", "eio")
    with pytest.raises(Exception, match=r"purpose|I/O"):
        await asyncio.to_thread(watched.log.page, after=0, upto=100)
    plan.disarm()
    page = await asyncio.to_thread(lambda: watched.log.page(after=0, upto=100))
    assert page.count == 100
    watched.admit(reading(1))
    await watched.settled()
    await watched.log.close(clean=True)


class Shed(MemoryRing):
    """A memory ring that remembers being asked for its room on the disk."""

    shed_count = 0

    def shed(self) -> None:
        self.shed_count += 1


async def test_on_a_full_disk_media_go_stimuli_are_refused_and_outputs_go_on(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SPACE_S", 0.01)
    room = [True]
    monkeypatch.setattr(Reserve, "take", lambda self: room[0])
    media = Shed(max_bytes=1000)
    watched = Watched(open_log(folder, vfs="axon-test-failing", media=media))
    room[0] = False
    plan.arm("write", "log.db-wal", "full", numbers={1})
    watched.admit(reading(1))
    await watched.settled()
    assert media.shed_count == 1
    assert watched.log.low_space
    with pytest.raises(LogBacklogFull, match="full"):
        watched.admit(reading(2))
    output = {"channel": "steer", "reading": {"value": 0.1}}
    watched.log.admit("cognet:output:field", output, reserve=True)
    await watched.settled()
    roomy = asyncio.Event()
    watched.log.on_space = lambda low: None if low else roomy.set()
    room[0] = True
    await asyncio.wait_for(roomy.wait(), 30)
    watched.admit(reading(3))
    await watched.settled()
    await watched.log.close(clean=True)
    assert list(LogReader(folder).rows()) == watched.admitted == watched.durable


async def test_a_folder_that_vanished_isn_t_written_in_silence(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any]
) -> None:
    watched = Watched(open_log(folder))
    watched.admit(reading(1))
    await watched.settled()
    os.rename(folder, folder.with_name("elsewhere"))
    watched.admit(reading(2))
    with pytest.raises(StorageFailed):
        await watched.settled()
    assert watched.log.state == "failed"
    resumed = asyncio.Event()
    watched.log.on_state = lambda state, _reason: resumed.set() if state == "ok" else None
    os.rename(folder.with_name("elsewhere"), folder)
    await asyncio.wait_for(resumed.wait(), 30)
    await watched.settled()
    await watched.log.close(clean=True)
    assert list(LogReader(folder).rows()) == watched.admitted == watched.durable


async def test_marks_are_written_again_with_their_entries(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any], plan: Plan
) -> None:
    watched = Watched(open_log(folder, vfs="axon-test-failing"))
    plan.arm("sync", "log.db-wal", "eio", numbers={2})
    for high in (1, 2, 3):
        mark = Mark(channel="host.cpu", source_id="", epoch="e", high=high)
        watched.log.admit(FIELD, reading(high), mark=mark)
        await watched.settled()
    await watched.log.close(clean=True)
    again = open_log(folder)
    assert again.marks == [Mark(channel="host.cpu", source_id="", epoch="e", high=3)]
    await again.close(clean=True)


async def test_a_disk_that_is_full_at_the_start_costs_the_reserve(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any], plan: Plan
) -> None:
    watched = Watched(open_log(folder))
    watched.admit(reading(1))
    await watched.settled()
    await watched.log.close(clean=True)
    assert "log.reserve" in os.listdir(folder)
    plan.arm("write", "log.db-wal", "full", numbers={1})
    again = open_log(folder, vfs="axon-test-failing")
    assert again.recovery.replayed == 1
    assert "log.reserve" not in os.listdir(folder)
    await again.close(clean=True)


async def test_a_disk_that_is_read_only_at_the_start_is_refused(
    folder: Path, open_log: Callable[..., Log], plan: Plan
) -> None:
    await open_log(folder).close(clean=True)
    plan.arm("write", "log.db-wal", "eio")
    with pytest.raises(StorageFailed, match="can't be opened"):
        open_log(folder, vfs="axon-test-failing")
    plan.disarm()
    await open_log(folder).close(clean=True)


async def test_a_slow_sync_holds_up_acknowledgements_and_nothing_else(
    folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any]
) -> None:
    watched = Watched(open_log(folder, sync_delay_ms=100))
    first = watched.log.durable(watched.admit(reading(0)).seq)
    turns = 0
    while not first.done():
        watched.admit(reading(1))
        turns += 1
        await asyncio.sleep(0)
    assert turns > 10
    await watched.settled()
    assert len(watched.log.commit_times()) < turns
    await watched.log.close(clean=True)
