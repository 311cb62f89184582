"""A sync fails, its bytes never get to the disk and the cache hides it; the log finds out, goes on, and then a cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crash.boot import boot
from crash.disk import Disk
from crash.recording import Recording
from crash.tape import Tape
from crash.truth import Truth
from crash.workload import Workload, open_log, take_session
from runtime.durable import database
from runtime.durable.faults import Operation

AMONG = 24
"""The syncs that fail are among so many."""


class FailingTape(Tape):
    """Some syncs of the log fail: what waited gets to the disk in part and counts as clean from then on.

    The files show the disk again after ``evict``, which stands for ``posix_fadvise(DONTNEED)``.
    """

    def __init__(self, root: Path, rng: random.Random) -> None:
        super().__init__(root)
        self._disk = Disk()
        self._rng = rng
        self._failing = set(rng.sample(range(2, AMONG), rng.randint(1, 3)))
        self._syncs = 0
        self.armed = False

    def record(self, operation: Operation) -> None:
        """Keep one operation, and what the disk has after it."""
        with self._lock:
            super().record(operation)
            if operation.kind != "note":
                self._disk.take(operation)

    def fails(self, _name: str) -> bool:
        """Whether this one does."""
        with self._lock:
            self._syncs += self.armed
            if not self.armed or self._syncs not in self._failing:
                return False
            self.record(Operation("lose", _name, self._rng.randrange(2**32)))
            return True

    def evict(self, path: Path) -> None:
        """Nobody has the database open."""
        with self._lock:
            for each in (path, database.wal_path(path)):
                content = self._disk.live(self.inside(str(each)) or "")
                if content is not None:
                    each.write_bytes(content)


@contextmanager
def evicting(tape: FailingTape) -> Iterator[None]:
    """The product's evictions show what this disk has."""
    real = database.evict
    database.evict = tape.evict
    try:
        yield
    finally:
        database.evict = real


def failing(root: Path, rng: random.Random) -> Recording:
    """Groups of entries, with one to three syncs of the log or of a checkpoint that fail."""
    return asyncio.run(_record(root, rng))


async def _record(root: Path, rng: random.Random) -> Recording:
    tape, truth = FailingTape(root, rng), Truth()
    with tape.running(), evicting(tape):
        session = take_session(root, tape)
        log = open_log(session)
        work = Workload(log, tape=tape, truth=truth, rng=rng, session=session.id)
        work.note()
        log.start(asyncio.get_running_loop())
        tape.armed = True
        await work.groups(rng.randint(20, 40), in_flight=rng.choice((1, 1, 4)))
        tape.armed = False
        await log.close(clean=rng.random() < 0.5)
        work.note()
        session.release()
    return Recording(
        operations=tape.operations,
        boot=lambda folder, thorough: boot(folder, truth, thorough=thorough),
        truth=truth,
        noise=False,
    )
