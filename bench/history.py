"""A log of a million entries: folding it all in the brain, and starting again on top of it."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from bench.agents import agent, outputs, run
from bench.figure import Figure, at_most, median
from runtime.abi.entries import Entry
from runtime.abi.ids import uuid7
from runtime.abi.payloads import Captured, FieldStimulus, Reading, Source
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

ENTRIES = 1_000_000
BATCH = 5_000
ROUNDS = 3


def figures() -> Iterator[Figure]:
    """Fill a session once, then measure on it."""
    with agent("cold_fold") as folder:
        session = fill(folder, ENTRIES)
        folds, floors = [], []
        for _ in range(ROUNDS):
            floors.append(raw_s(session / "log.db"))
            summary = run(folder, 1)
            folds.append(outputs(folder, "report")[-1]["seconds"])
        name = "raw SELECT + decoding with msgspec, s"
        yield at_most("cold_fold_1M", median(folds), 2 * median(floors), "s", name, median(floors))
        yield at_most("brain_rss_after_cold_fold", summary["processes"]["brain"]["rss_mb"], 45, "MB", "resident", None)
        with agent() as rover:
            shutil.move(folder / "data", rover / "data")
            yield from restart(rover)


def restart(rover: Path) -> Iterator[Figure]:
    """``reflex`` on that log: once without a checkpoint, then from the one it left."""
    first = run(rover, 7)["boot"]
    second = run(rover, 1)["boot"]
    yield at_most("reflex_first_wake_no_checkpoint", first["first_wake_ms"], None, "ms", "folds all, ms", None)
    yield at_most("reflex_first_wake_1M", second["first_wake_ms"], 2000, "ms", "with its checkpoint, from start", None)


def fill(folder: Path, count: int) -> Path:
    """A session of ``count`` entries, written by the product's own log; returns its folder."""
    session = folder / "data" / "sessions" / uuid7()
    session.mkdir(parents=True)
    (folder / "data" / "session").write_text(session.name)
    asyncio.run(_fill(session, count))
    return session


async def _fill(session: Path, count: int) -> None:
    names = {"agent_id": "bench", "session_id": session.name, "boot_id": uuid7()}
    log = Log.open(session, **names, settings=LogSettings(), media=MemoryRing(max_bytes=1_000_000))
    log.start(asyncio.get_running_loop())
    for number in range(count):
        captured = Captured(epoch="e", ms=number, seq=number + 1)
        data = FieldStimulus(source=Source(channel="host.cpu"), reading=Reading(value=number / 7), captured=captured)
        log.admit("cognet:stimulus:field", data)
        if number % BATCH == BATCH - 1:
            await log.durable(log.last_seq)
    await log.durable(log.last_seq)
    await log.close(clean=True)


def raw_s(path: Path) -> float:
    """The floor of a fold: the rows as they come, decoded one by one."""
    decode = msgspec.json.Decoder(Entry).decode
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    began, count = time.perf_counter(), 0
    for _seq, body in connection.execute("SELECT seq, body FROM entry ORDER BY seq"):
        decode(body)
        count += 1
    took = time.perf_counter() - began
    connection.close()
    assert count >= ENTRIES
    return took
