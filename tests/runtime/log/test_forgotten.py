"""Layer 0': a sync fails, the cache forgets what it should write, the writer goes on, and then the power goes."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from runtime.durable import database
from runtime.durable.faults import Forgetful
from runtime.log import chain, storage
from runtime.log.log import Log

FIELD = "cognet:stimulus:field"


class Nth:
    """Fails the syncs whose numbers are listed, over all files of the log."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.count = 0

    def __call__(self, file: str) -> bool:
        if not self.numbers:
            return False
        self.count += 1
        return self.count in self.numbers


@pytest.fixture
def fails() -> Nth:
    return Nth()


@pytest.fixture
def layer(fails: Nth) -> Iterator[Forgetful]:
    forgetful = Forgetful("axon-test-forgetful", fails)
    yield forgetful
    forgetful.close()


async def run(log: Log, fails: Nth, at: int) -> int:
    """Commit, with the sync number ``at`` failing; returns what was acknowledged."""
    fails.numbers, fails.count = {at}, 0
    log.start(asyncio.get_running_loop())
    for value in range(12):
        for _ in range(1 + value % 3):
            log.admit(FIELD, {"source": {"channel": "c"}, "reading": {"value": value}})
        await asyncio.wait_for(log.durable(log.last_seq), 30)
    return log.last_seq


def on_the_disk(layer: Forgetful, folder: Path) -> int:
    """Entries that are there after the cut."""
    folder.mkdir()
    for name, image in layer.cut().items():
        if not name.endswith("-journal"):
            (folder / name).write_bytes(image)
    connection = apsw.Connection(str(folder / "log.db"))
    try:
        assert connection.pragma("integrity_check") == "ok"
        rows: Any = connection.execute(f"SELECT {chain.COLUMNS} FROM entry ORDER BY seq").fetchall()
    finally:
        connection.close()
    chain.check(rows, after=0, previous=chain.GENESIS)
    return len(rows)


@pytest.mark.parametrize("at", range(1, 16))
async def test_eviction_keeps_what_is_acknowledged_after_a_failed_sync(
    folder: Path,
    open_log: Callable[..., Log],
    layer: Forgetful,
    fails: Nth,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
) -> None:
    monkeypatch.setattr(storage, "CHECKPOINT_PAGES", 12)
    monkeypatch.setattr(database, "evict", lambda path: layer.evict(path.parent))
    log = open_log(folder, vfs="axon-test-forgetful")
    acknowledged = await run(log, fails, at)
    assert on_the_disk(layer, folder.parent / "cut") == acknowledged
    await log.close(clean=True)


async def test_control_without_eviction_acknowledged_entries_are_lost(
    folder: Path, open_log: Callable[..., Log], layer: Forgetful, fails: Nth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "evict", lambda path: None)
    monkeypatch.setattr(storage.Storage, "checkpoint", lambda self, **_given: None)  # none came in time
    log = open_log(folder, vfs="axon-test-forgetful")
    acknowledged = await run(log, fails, at=3)
    assert on_the_disk(layer, folder.parent / "cut") < acknowledged
    await log.close(clean=True)
