"""Boots cut anywhere: one on what a cut left is recorded itself, with the entries that come after it."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import msgspec

from crash.boot import Damage, boot, opened
from crash.cuts import State, states
from crash.disk import KINDS, Kind
from crash.promise import Promise
from crash.recording import Recording, lay_out
from crash.scenarios.entries import entries, media
from crash.scenarios.months import months
from crash.tape import Tape
from crash.truth import Truth
from crash.workload import Workload, open_log, take_session
from runtime.kernel.session import Session
from runtime.log.reader import LogReader
from runtime.media.disk import FILE_NAME, DiskRing

SYNCED_ONLY: tuple[Kind, ...] = ("dropped",)
"""The least that a cut leaves: here a boot writes closest to what was acknowledged."""
DEPTH = 3
"""So many boots at most, each on what a cut of the one before left."""


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """What a boot finds on a state, and how far the log goes after it."""

    found: int
    last: int
    set_aside: bool


def recovery(root: Path, rng: random.Random) -> Recording:
    """A boot after a cut, perhaps of such a boot, perhaps with media, perhaps with segments half done."""
    recording = rng.choice((entries, entries, media, months))(emptied(root), rng)
    for _ in range(rng.randint(1, DEPTH)):
        state = some_state(recording, rng, kinds=rng.choice((KINDS, SYNCED_ONLY)))
        recording = recorded_boot(root, state, recording, rng)
    return recording


def some_state(recording: Recording, rng: random.Random, *, kinds: tuple[Kind, ...] = KINDS) -> State:
    """Any in which something is promised: cuts before that are for the first start."""
    found: State | None = None
    for state in states(recording.operations, rng=rng, before=recording.before, share=0.05, kinds=kinds):
        if state.note.acknowledged and (found is None or rng.random() < 0.05):
            found = state
    return found or some_state(recording, rng, kinds=kinds)


def recorded_boot(
    root: Path, state: State, earlier: Recording, rng: random.Random, *, damage: Damage | None = None
) -> Recording:
    """Lay the state out, and record a boot on it with some more entries."""
    stand = dry_run(root, state)
    lay_out(state.files, state.folders, emptied(root))
    return asyncio.run(_record(root, state, earlier, stand, rng, damage))


def dry_run(root: Path, state: State) -> Stand:
    """Boot once off the record."""
    lay_out(state.files, state.folders, emptied(root))
    session = Session.take(root, None)
    with opened(session, "dry") as found:
        recovery = found.recovery
    session.release()
    return Stand(found=recovery.replayed, last=recovery.last_seq, set_aside=recovery.set_aside is not None)


async def _record(
    root: Path, state: State, earlier: Recording, stand: Stand, rng: random.Random, damage: Damage | None
) -> Recording:
    tape, truth = Tape(root), Truth(earlier.truth.entries[: stand.found])
    truth.media = dict(earlier.truth.media)
    truth.marks = [(seq, mark) for seq, mark in earlier.truth.marks if seq <= stand.found]
    with tape.running():
        # What a boot finds is promised once its own commit is on the disk; until then it is what was promised before.
        sure = stand.found if damage else min(state.note.acknowledged, stand.found)
        promised = Promise(acknowledged=sure, begun=stand.last)
        session = take_session(root, tape, promised=promised)
        ring = DiskRing(session.folder, max_bytes=10**9) if (session.folder / FILE_NAME).exists() else None
        log = open_log(session, ring, **earlier.settings)
        truth.add(LogReader(session.folder).rows(after=stand.found))
        work = Workload(log, tape=tape, truth=truth, rng=rng, session=session.id, longest=900)
        work.note()
        log.start(asyncio.get_running_loop())
        await work.groups(rng.randint(0, 4), media=ring)
        await log.close(clean=rng.random() < 0.5)
        work.note()
        if ring is not None:
            ring.close()
        session.release()
    return Recording(
        operations=tape.operations,
        boot=lambda folder, thorough: boot(folder, truth, damage=damage, thorough=thorough),
        truth=truth,
        before=state.files,
        settings=earlier.settings,
    )


def emptied(root: Path) -> Path:
    """The folder, with nothing in it."""
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return root
