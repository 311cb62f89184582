"""Sealing and retention: what left the live rows reads as before, or is told, whatever was cut."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.entries import decode, decode_page
from runtime.abi.link import Row
from runtime.log import sealing
from runtime.log.archive import FOLDER
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.verify import verify

FIELD = "cognet:stimulus:field"
RETENTION = b'"type":"retention"'


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "LOOK_S", 0.01)
    monkeypatch.setattr(sealing, "REST", 0.0)
    monkeypatch.setattr(sealing, "KEEP_ENTRIES", 16)


@pytest.fixture
def small(open_log: Callable[..., Log]) -> Callable[..., Log]:
    """A log that seals early; keyword arguments are its settings."""

    def opening(folder: Path, **settings: Any) -> Log:
        return open_log(folder, **{"window_entries": 16, "seal_bytes": SEAL_BYTES, **settings})

    return opening


async def fill(log: Log, count: int, *, at_once: int = 100) -> list[Row]:
    rows = []
    while len(rows) < count:
        for _ in range(min(at_once, count - len(rows))):
            value = log.last_seq
            rows.append(log.admit(FIELD, {"source": {"channel": f"c{value % 7}"}, "reading": {"value": value}}))
        await asyncio.wait_for(log.durable(log.last_seq), 30)
    return rows


async def until(what: Callable[[], bool]) -> None:
    """Look again and again, in a thread, for 30 s at most."""
    deadline = time.monotonic() + 30
    while not await asyncio.to_thread(what):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


SEAL_BYTES = 100_000


def swept(folder: Path, *, retain_bytes: int = 0) -> bool:
    """Nothing more is to be sealed, deleted or retired."""
    reader = LogReader(folder)
    noted = reader.catalog()
    if not noted.pieces or noted.floor.seq != noted.pieces[-1].last:
        return False
    too_many = retain_bytes and sum(each.size_bytes for each in noted.segments) > retain_bytes
    return not too_many and sum(len(row.body) for row in reader.rows(after=noted.floor.seq)) <= SEAL_BYTES


async def read_pages(log: Log, after: int = 0) -> list[Any]:
    entries: list[Any] = []
    while (page := await asyncio.to_thread(partial(log.page, after=after, upto=2**60))).count:
        entries += decode_page(page.bodies, page.first_seq)
        after = entries[-1].seq
    return entries


async def test_old_entries_move_into_segments_and_read_as_before(folder: Path, small: Callable[..., Log]) -> None:
    log = small(folder)
    log.start(asyncio.get_running_loop())
    rows = await fill(log, 3000)
    await until(lambda: swept(folder))
    noted = LogReader(folder).catalog()
    assert noted.segments
    assert list(LogReader(folder).rows()) == rows
    assert await read_pages(log) == [decode(row.body, row.seq) for row in rows]
    assert log.first_seq == 1
    found = verify(folder)
    assert (found.ok, found.entries, found.seq_monotonic, found.segments) == (True, 3000, True, len(noted.segments))
    await log.close(clean=True)


async def test_chain_and_last_of_type_reach_into_segments(folder: Path, small: Callable[..., Log]) -> None:
    log = small(folder)
    log.start(asyncio.get_running_loop())
    log.admit("axon:agent:settled", {"upto_seq": 0})
    await asyncio.wait_for(log.durable(1), 30)
    chains = [await asyncio.to_thread(log.chain_at, 1)]
    for _ in range(20):
        await fill(log, 100)
        chains.append(await asyncio.to_thread(log.chain_at, log.last_seq))
    await until(lambda: swept(folder))
    assert LogReader(folder).catalog().floor.seq > 301
    for number, known in enumerate(chains):
        assert await asyncio.to_thread(log.holds, 1 + 100 * number, known)
    assert not await asyncio.to_thread(log.holds, 55, chains[0])
    assert await asyncio.to_thread(log.last_of_type, "axon:agent:settled") == 1
    await log.close(clean=True)


async def test_retention_is_told_in_the_place_of_what_is_gone(folder: Path, small: Callable[..., Log]) -> None:
    log = small(folder, retain_bytes=8000)
    moved: list[int] = []
    log.on_retired = moved.append
    log.start(asyncio.get_running_loop())
    log.admit("axon:agent:settled", {"upto_seq": 0})
    rows = await fill(log, 6000)
    await until(lambda: swept(folder, retain_bytes=8000))
    retired = LogReader(folder).catalog().gaps[0]
    assert moved[-1] == log.first_seq == retired.last + 1
    entries = await read_pages(log)
    told: Any = entries[0]
    assert told.seq == retired.last
    assert told.data.type == "retention"
    assert told.data.facts == {"first_seq": 1, "last_seq": retired.last, "chain": retired.chain.hex()}
    assert entries[1:] == [decode(row.body, row.seq) for row in rows if row.seq > retired.last]
    less = await asyncio.to_thread(lambda: log.page(after=3, upto=9))
    assert (less.first_seq, less.count) == (9, 1)
    assert RETENTION in less.bodies
    assert (await read_pages(log, after=retired.last))[0].seq == retired.last + 1
    assert await asyncio.to_thread(log.holds, retired.last, retired.chain.hex())
    assert await asyncio.to_thread(log.last_of_type, "axon:agent:settled") == 1
    found = await asyncio.to_thread(verify, folder)
    assert (found.ok, found.retired_upto, found.entries) == (True, retired.last, 6001 - retired.last)
    held = {each.name for each in LogReader(folder).catalog().segments}
    assert {path.name for path in (folder / FOLDER).iterdir()} == held
    await log.close(clean=True)
    again = small(folder)
    assert again.first_seq == retired.last + 1
    await again.close(clean=True)


async def test_age_seals_and_retires_by_running_time(
    folder: Path, small: Callable[..., Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = small(folder, seal_bytes=0, seal_age_s=0.2, retain_age_s=0.3)
    log.start(asyncio.get_running_loop())
    rows = await fill(log, 500)
    await until(lambda: LogReader(folder).catalog().retired >= 480)
    assert list(LogReader(folder).rows())[-10:] == rows[-10:]
    await log.close(clean=True)


async def test_little_room_on_the_disk_retires(
    folder: Path, small: Callable[..., Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "free_bytes", lambda _folder: 999)
    log = small(folder, min_free_bytes=1000)
    log.start(asyncio.get_running_loop())
    await fill(log, 3000)
    await until(lambda: LogReader(folder).catalog().retired > 0)
    await log.close(clean=True)


async def test_a_block_that_was_sealed_unfinished_is_closed_and_one_that_ended_isn_t(
    folder: Path, small: Callable[..., Log]
) -> None:
    log = small(folder)
    log.start(asyncio.get_running_loop())
    for action in ("ends late", "ends never", "ends at once"):
        log.admit("cognet:action:python", {"action": action, "code": "move()"})
    log.admit("cognet:action:result", {"action": "ends at once", "ok": True})
    await fill(log, 1500)
    await until(lambda: swept(folder))
    log.admit("cognet:action:result", {"action": "ends late", "ok": True})
    first = LogReader(folder).catalog().floor.seq
    await fill(log, 1500)
    await until(lambda: swept(folder) and LogReader(folder).catalog().floor.seq > first)
    await log.close(clean=False)
    again = small(folder)
    assert again.recovery.actions_closed == 1
    results = list(LogReader(folder).rows(types=["cognet:action:result"]))
    assert b'"ends never"' in results[-1].body
    await again.close(clean=False)
    last = small(folder)
    assert last.recovery.actions_closed == 0
    await last.close(clean=True)
