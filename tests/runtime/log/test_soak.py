"""Thirty days in half a minute: every threshold a thousandth, nothing waits, and nothing grows."""

import asyncio
import subprocess
import sys
import threading
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


def watch(folder: Path, over: threading.Event) -> int:
    """Read the whole log again and again while entries move and go; returns how often."""
    passes = 0
    while not over.wait(0.5):
        last = 0
        for row in LogReader(folder).rows():
            told = row.type == "axon:system:message"
            assert row.seq > last if told else row.seq == last + 1, (last, row.seq)
            last = row.seq
            if over.is_set():
                break
        passes += 1
    return passes


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
    over = threading.Event()
    watching = asyncio.create_task(asyncio.to_thread(watch, folder, over))
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
    over.set()
    assert await asyncio.wait_for(watching, 30), "nobody read meanwhile"
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


KILLED = """
import asyncio, sys
from pathlib import Path
from runtime.log import sealing
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

sealing.LOOK_S, sealing.KEEP_ENTRIES = 0.01, 16

async def main() -> None:
    log = Log.open(
        Path(sys.argv[1]), agent_id="rover", session_id="session", boot_id=sys.argv[2],
        settings=LogSettings(volatile_data=True, seal_bytes=64_000, retain_bytes=40_000, window_entries=16),
        media=MemoryRing(max_bytes=1000),
    )
    log.on_durable = lambda rows: sys.stdout.write(f"{rows[-1].seq}\\n") and sys.stdout.flush()
    log.start(asyncio.get_running_loop())
    while True:
        for value in range(30):
            log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": log.last_seq}})
        await log.durable(log.last_seq)

asyncio.run(main())
"""


async def test_sigkill_while_it_seals_and_retires(folder: Path, open_log: Callable[..., Log]) -> None:
    """Layer 1: the process ends anywhere in a seal or a retention; what it acknowledged is there or told of."""
    for boot in range(6):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, str(folder), f"boot-{boot}", stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        for _ in range(60 + 37 * boot):
            await asyncio.wait_for(process.stdout.readline(), 30)
        process.kill()
        rest = await asyncio.wait_for(process.stdout.read(), 30)
        await process.wait()
        acknowledged = [int(line) for line in rest.split(b"\n")[:-1]]
        found = await asyncio.to_thread(verify, folder)
        assert found.ok, found
        assert found.last_seq >= max(acknowledged, default=0)
    log = open_log(folder)
    assert log.recovery.damage is None
    assert log.first_seq > 1
    await log.close(clean=True)
