"""Blocks when the log's disk fails or is too slow: an exception, never a hang, never an unrecorded execution."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from runtime.durable.faults import Failing
from runtime.kernel.execution import execution as execution_module
from runtime.log import log as log_module
from runtime.log import writer

NAME = "axon-test-execution"


class Disk:
    """Fails every write of the log while ``broken``."""

    broken = False

    def __call__(self, operation: str, file: str) -> str | None:
        return "eio" if self.broken and (operation, file) == ("write", "log.db-wal") else None


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setattr(writer, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(writer, "LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(execution_module, "AGAIN_S", 0.01)
    disk = Disk()
    layer = Failing(NAME, disk)
    yield disk
    layer.close()


async def recovered(bench, disk):
    """The disk works again, and all that was admitted is on it."""
    ok = asyncio.Event()
    bench.log.on_state = lambda state, _: ok.set() if state == "ok" else None
    disk.broken = False
    if bench.log.state != "ok":
        await asyncio.wait_for(ok.wait(), 20)
    await asyncio.wait_for(bench.log.durable(bench.log.last_seq), 20)


async def test_when_the_disk_fails_the_block_isnt_executed(make_bench, soon, disk):
    bench = make_bench(vfs=NAME)
    disk.broken = True
    (result,) = await soon(bench.run("1"))
    assert result.error.kind == "exception"
    assert "STORAGE_FAILED" in result.error.message
    assert bench.capsule.runs == []
    await recovered(bench, disk)
    action, outcome = bench.entries()
    assert outcome.data.action == action.data.action
    assert outcome.data.error.kind == "exception"


async def test_when_it_fails_while_the_block_runs_the_result_stands(make_bench, soon, disk):
    bench = make_bench(vfs=NAME)
    run = bench.run("1")
    await soon(bench.capsule.began.wait())
    disk.broken = True
    bench.capsule.settle_all()
    assert (await soon(run))[0].ok, "run resolves when its result is admitted"
    (later,) = await soon(bench.run("2"))
    assert not later.ok
    await recovered(bench, disk)


async def test_when_too_much_waits_for_the_disk_nothing_is_executed(make_bench, soon, disk, monkeypatch):
    bench = make_bench(vfs=NAME)
    monkeypatch.setattr(log_module, "MAX_RESERVED_BACKLOG_BYTES", 10)
    (result,) = await soon(bench.run("1"))
    assert result.error.message.startswith("LOG_BACKLOG_FULL")
    assert bench.entries() == []


async def test_a_result_that_finds_no_room_is_told_and_recorded_later(make_bench, soon, disk, monkeypatch):
    bench = make_bench(vfs=NAME)
    run = bench.run("1")
    await soon(bench.capsule.began.wait())
    monkeypatch.setattr(log_module, "MAX_RESERVED_BACKLOG_BYTES", 10)
    bench.capsule.settle_all()
    (result,) = await soon(run)
    assert "LOG_BACKLOG_FULL" in result.error.message
    assert len(bench.entries()) == 1
    monkeypatch.undo()
    await bench.until(lambda: len(bench.entries()) == 2)
    assert bench.entries()[1].data.error.message == result.error.message
