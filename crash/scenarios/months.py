"""Months in a second: entries move into segments, the oldest segments are removed, and entries go on coming."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import Any

from crash.boot import boot
from crash.recording import Recording
from crash.tape import Tape
from crash.truth import Truth
from crash.workload import LIMIT_S, Workload, open_log, take_session
from runtime.log.reader import LogReader

SETTINGS: dict[str, Any] = {"window_entries": 4, "seal_bytes": 20_000, "retain_bytes": 12_000}


def months(root: Path, rng: random.Random) -> Recording:
    """Rounds of entries, each sealed, swept and retired while the next ones are written."""
    return asyncio.run(_record(root, rng))


async def _record(root: Path, rng: random.Random) -> Recording:
    tape, truth = Tape(root), Truth()
    with tape.running():
        session = take_session(root, tape)
        log = open_log(session, **SETTINGS)
        work = Workload(log, tape=tape, truth=truth, rng=rng, session=session.id, longest=900)
        work.note()
        log.start(asyncio.get_running_loop())
        for _ in range(rng.randint(3, 5)):
            await work.groups(rng.randint(12, 20), in_flight=2)
            await _until_quiet(session.folder)
        await log.close(clean=rng.random() < 0.5)
        work.note()
        session.release()
    return Recording(
        operations=tape.operations,
        boot=lambda folder, thorough: boot(folder, truth, thorough=thorough),
        truth=truth,
        settings=SETTINGS,
    )


async def _until_quiet(session: Path) -> None:
    """Until nothing is due any more: the interesting moments are those before."""
    deadline = time.monotonic() + LIMIT_S
    while not await asyncio.to_thread(_is_quiet, session):
        if time.monotonic() > deadline:
            raise TimeoutError("sealing doesn't come to its end")
        await asyncio.sleep(0.005)


def _is_quiet(session: Path) -> bool:
    reader = LogReader(session)
    noted = reader.catalog()
    small = sum(each.size_bytes for each in noted.segments) <= int(SETTINGS["retain_bytes"])
    swept = not noted.pieces or noted.floor.seq == noted.pieces[-1].last
    live = sum(len(row.body) for row in reader.rows(after=noted.floor.seq))
    return small and swept and live <= int(SETTINGS["seal_bytes"])
