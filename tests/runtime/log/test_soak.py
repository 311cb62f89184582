"""Thirty days in half a minute: every threshold a thousandth, nothing waits, and nothing grows."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from runtime.abi.errors import LogBacklogFull
from runtime.abi.link import Row
from runtime.log import sealing, storage, writer
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.verify import verify

FIELD = "cognet:stimulus:field"
MB = 1024 * 1024
DAYS = 30
ENTRIES_A_DAY = 10_000  # a rover makes 10 million
SEAL_BYTES = 64_000  # 64 MB
RETAIN_BYTES = 1_000_000  # 1 GB


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "LOOK_S", 0.002)
    monkeypatch.setattr(sealing, "REST", 0.0)
    monkeypatch.setattr(sealing, "KEEP_ENTRIES", 16)
    monkeypatch.setattr(writer, "SWEEP_S", 0.0)
    monkeypatch.setattr(writer, "OVERDUE_S", 0.0)


def readings(log: Log, count: int) -> list[Row]:
    source = {"source": {"channel": "host.cpu"}}
    return [log.admit(FIELD, source | {"reading": {"value": log.last_seq, "unit": "%"}}) for _ in range(count)]


async def sealed(log: Log, folder: Path) -> None:
    """Wait until the day's entries have left the live rows; a real day leaves a thousand times as long for it."""
    reader, deadline = LogReader(folder), time.monotonic() + 30
    while log.last_seq - (await asyncio.to_thread(reader.catalog)).floor.seq > ENTRIES_A_DAY // 4:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def files_of(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


@pytest.mark.slow
async def test_thirty_days_of_seals_and_retentions_stay_small(
    folder: Path, open_log: Callable[..., Log], scaled: None
) -> None:
    log = open_log(folder, seal_bytes=SEAL_BYTES, retain_bytes=RETAIN_BYTES, window_entries=64)
    log.start(asyncio.get_running_loop())
    process = psutil.Process()
    resident: list[int] = []
    largest: dict[str, int] = {}
    for _ in range(DAYS):
        for _ in range(ENTRIES_A_DAY // 250):
            readings(log, 250)
            await asyncio.wait_for(log.durable(log.last_seq), 30)
        await sealed(log, folder)
        for name, size in files_of(folder).items():
            largest[name] = max(size, largest.get(name, 0))
        resident.append(process.memory_info().rss)
    assert log.last_seq == DAYS * ENTRIES_A_DAY
    noted = await asyncio.to_thread(LogReader(folder).catalog)
    assert noted.retired > ENTRIES_A_DAY
    assert sum(each.size_bytes for each in noted.segments) < 1.3 * RETAIN_BYTES
    assert largest["log.db-wal"] < 64 * MB
    assert largest["log.db"] < 16 * MB
    assert max(resident[10:]) - resident[9] < 8 * MB, [each // MB for each in resident]
    await log.close(clean=True)
    found = await asyncio.to_thread(verify, folder)
    assert found.ok
    assert found.last_seq == DAYS * ENTRIES_A_DAY
    again = open_log(folder)
    assert again.first_seq == found.retired_upto + 1
    await again.close(clean=True)


async def test_a_transaction_held_open_by_another_program_bounds_the_write_ahead_log(
    folder: Path, open_log: Callable[..., Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scaled 1:64: telemetry waits, commits come seldom, at last stimuli are refused; outputs go on, all is kept."""
    for name, pages in (("CHECKPOINT_PAGES", 16), ("CHECKPOINT_PAGES_AT_MOST", 60), ("TRUNCATE_PAGES", 120)):
        monkeypatch.setattr(storage, name, pages)
    monkeypatch.setattr(writer, "CROWDED_PAGES", 60)
    monkeypatch.setattr(writer, "CROWDED_S", 0.01)
    monkeypatch.setattr(writer, "WAL_FULL_PAGES", 200)
    monkeypatch.setattr(writer, "SPACE_S", 0.01)
    log = open_log(folder)
    log.start(asyncio.get_running_loop())
    rows = readings(log, 10)
    await asyncio.wait_for(log.durable(10), 30)
    holder = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-c", HOLDER, str(folder / "log.db")], stdin=-1, stdout=-1
    )
    assert await asyncio.to_thread(holder.stdout.readline) == b"held\n"  # type: ignore[union-attr]
    refused = False
    for _ in range(2000):
        try:
            rows += readings(log, 4)
        except LogBacklogFull as error:
            refused = "another program" in str(error)
            break
        await asyncio.wait_for(log.durable(log.last_seq), 30)
    assert refused
    rows.append(log.admit("axon:interrupt", {"by": "person"}, urgent=True, reserve=True))
    await asyncio.wait_for(log.durable(log.last_seq), 30)
    assert (folder / "log.db-wal").stat().st_size < MB
    room = asyncio.Event()
    log.on_space = lambda low: None if low else room.set()
    await asyncio.to_thread(holder.communicate, b"go\n")
    await asyncio.wait_for(room.wait(), 30)
    rows += readings(log, 4)
    await asyncio.wait_for(log.durable(log.last_seq), 30)
    await log.close(clean=True)
    assert [row.seq for row in LogReader(folder).rows()] == [row.seq for row in rows] == list(range(1, len(rows) + 1))


HOLDER = """
import sys
import apsw
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM entry").fetchall()
print("held", flush=True)
sys.stdin.readline()
"""
