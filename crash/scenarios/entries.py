"""A session from its very first start on: entries of every kind, checkpoints, media, and several boots."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from crash.boot import boot
from crash.recording import Recording
from crash.tape import Tape
from crash.truth import Truth
from crash.workload import Pinned, Workload, open_log, take_session
from runtime.media.disk import DiskRing


def entries(root: Path, rng: random.Random) -> Recording:
    """Groups of entries, each promised, with checkpoints under way; a clean end or none."""
    return asyncio.run(_record(root, rng, media=False))


def media(root: Path, rng: random.Random) -> Recording:
    """The same with pictures on the disk, which rows name."""
    return asyncio.run(_record(root, rng, media=True))


async def _record(root: Path, rng: random.Random, *, media: bool) -> Recording:
    tape, truth = Tape(root), Truth()
    with tape.running():
        session = take_session(root, tape)
        ring = DiskRing(session.folder, max_bytes=10**9) if media else None
        log = open_log(session, ring)
        work = Workload(log, tape=tape, truth=truth, rng=rng, session=session.id)
        work.note()
        log.start(asyncio.get_running_loop())
        pinned = None
        for part in range(3):
            if pinned is None and rng.random() < 0.3 and part:
                pinned = Pinned(session.folder)
            await work.groups(rng.randint(6, 14), media=ring, in_flight=rng.choice((1, 1, 4)))
            if pinned is not None:
                pinned.end()
        await log.close(clean=rng.random() < 0.7)
        work.note()
        if ring is not None:
            ring.close()
        session.release()
    return Recording(
        operations=tape.operations,
        boot=lambda folder, thorough: boot(folder, truth, thorough=thorough),
        truth=truth,
    )
