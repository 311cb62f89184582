"""Ingest with the real log and media ring: marks survive with the entries, and only durable ones are confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from runtime.abi import envelope as e
from runtime.abi.payloads import Captured
from runtime.ingest.ingest import Ingest, Taken
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

Opened = tuple[Ingest, Log, MemoryRing]
Opening = Callable[[str], AbstractAsyncContextManager[Opened]]


@pytest.fixture
def kernel(tmp_path: Path) -> Opening:
    """Open the session's log with an ingest on it, as a kernel does at each start."""

    @asynccontextmanager
    async def opening(boot_id: str) -> AsyncIterator[Opened]:
        media = MemoryRing(max_bytes=1_000_000)
        settings = LogSettings(volatile_data=True)
        log = Log.open(tmp_path, agent_id="rover", session_id="s", boot_id=boot_id, settings=settings, media=media)
        log.start(asyncio.get_running_loop())
        ingest = Ingest(agent="rover", log_admit=log.admit, media=media, marks=log.marks, tell=lambda type_, data: None)
        try:
            yield ingest, log, media
        finally:
            async with asyncio.timeout(25):
                await log.close(clean=True)

    return opening


def frame(ingest: Ingest, seq: int, *, epoch: str = "e1") -> Taken:
    """Send a small picture with that counter."""
    picture = e.VisualEnvelope(
        bytes=b"jpeg%d" % seq,
        kind="image/jpeg",
        width=4,
        height=3,
        captured=Captured(epoch=epoch, ms=1, seq=seq),
    )
    return ingest.take("axon/rover/stimulus/visual/camera", e.encode(picture), False)


async def test_marks_come_back_with_the_log(kernel: Opening) -> None:
    async with kernel("boot1") as (ingest, _, _):
        assert [frame(ingest, seq).outcome for seq in (1, 2, 5)] == ["admitted"] * 3
        assert frame(ingest, 1, epoch="e2").outcome == "admitted"
    async with kernel("boot2") as (ingest, log, _):
        assert [(channel, c.epoch, c.seq) for channel, c in ingest.committed(log.durable_seq)] == [("camera", "e2", 1)]
        assert frame(ingest, 5).outcome == "duplicate"
        assert frame(ingest, 6).outcome == "refused"
        assert frame(ingest, 1, epoch="e2").outcome == "duplicate"
        taken = frame(ingest, 2, epoch="e2")
        assert (taken.outcome, taken.seq, taken.gap) == ("admitted", 5, None)


async def test_a_stimulus_is_confirmed_when_the_log_says_that_it_is_durable(kernel: Opening) -> None:
    async with kernel("boot1") as (ingest, log, media):
        taken = frame(ingest, 1)
        assert ingest.committed(0) == []
        async with asyncio.timeout(25):
            await log.durable(taken.seq)
        assert [c.seq for _, c in ingest.committed(log.durable_seq)] == [1]
        assert media.size_bytes == len(b"jpeg1")


async def test_an_entry_too_large_for_the_log_is_refused_and_uses_no_number(kernel: Opening) -> None:
    async with kernel("boot1") as (ingest, log, _):
        words = e.encode(e.TextEnvelope(content="\u0001" * 43_680))  # six bytes each in JSON
        assert len(words) < 256 * 1024
        taken = ingest.take("axon/rover/stimulus/text/person", words, False)
        assert taken.error is not None
        assert (taken.error.code, log.last_seq) == ("ENTRY_TOO_LARGE", 0)
