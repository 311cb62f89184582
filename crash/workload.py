"""A kernel's work on a log: entries of every kind in groups, each promised when the log says that it is durable."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import apsw
import msgspec

from crash.promise import Promise
from crash.tape import Tape
from crash.truth import Truth
from runtime.abi.clock import mono_us
from runtime.abi.errors import StorageFailed
from runtime.abi.ids import uuid7
from runtime.abi.telemetry import Fact, TelemetryEvent
from runtime.durable.database import open_reader
from runtime.kernel.session import Session
from runtime.log.log import Log
from runtime.log.settings import LogSettings, Mark
from runtime.media.ring import MediaRing, MemoryRing

LIMIT_S = 60.0
SIZES = (1, 1, 1, 1, 2, 5, 12)
LENGTHS = (0, 10, 200, 900, 3900, 4100, 9000)
"""Of texts: within a page, at its edge, and over several."""


class Workload:
    """Admits, waits, and notes on the tape what was begun and what acknowledged."""

    def __init__(
        self, log: Log, *, tape: Tape, truth: Truth, rng: random.Random, session: str, longest: int = max(LENGTHS)
    ) -> None:
        self.log = log
        self._tape = tape
        self._truth = truth
        self._rng = rng
        self._session = session
        self._lengths = [length for length in LENGTHS if length <= longest]
        self._counter = log.last_seq
        self._open_actions: list[str] = []
        log.on_admitted = truth.add
        log.on_durable = lambda _rows: self.note()

    def note(self, *, more: int = 0) -> None:
        """What is promised now, and that up to ``more`` entries are about to be admitted."""
        begun = self.log.last_seq + more
        values = {"session": (self._session,)}
        self._tape.note(Promise(acknowledged=self.log.durable_seq, begun=begun, values=values))

    async def groups(self, count: int, *, media: MediaRing | None = None, in_flight: int = 1) -> None:
        """So many groups of entries; up to ``in_flight`` of them wait for the disk at once."""
        for _ in range(count):
            size = self._rng.choice(SIZES)
            self.note(more=size)
            for _ in range(size):
                self._admit(media)
            if self._rng.random() < 0.3:
                self.log.tell(self._event())
            if self._rng.random() * in_flight < 1:
                await self.durable()
        await self.durable()

    async def durable(self) -> None:
        """Until all that was admitted is acknowledged, however often the storage fails before that."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                try:
                    await self.log.durable(self.log.last_seq)
                    return
                except StorageFailed:
                    await asyncio.sleep(0.002)

    def _admit(self, media: MediaRing | None) -> None:
        kind, rng = self._rng.random(), self._rng
        if media is not None and kind < 0.5:
            picture = rng.randbytes(rng.choice((40, 3000, 12_000)))
            ref = media.stage(picture)
            self._truth.media[ref] = picture
            self.log.admit("cognet:stimulus:visual", _picture(ref))
        elif kind < 0.6:
            self._field()
        elif kind < 0.75:
            content = "x" * rng.choice(self._lengths)
            self.log.admit("cognet:stimulus:text", {"source": {"channel": "person"}, "content": content})
        elif kind < 0.85:
            data = {"channel": "steer", "reading": {"value": rng.random()}}
            self.log.admit("cognet:output:field", data, wake_id=uuid7(), cursor=self.log.last_seq)
        elif self._open_actions and kind < 0.95:
            result = {"action": self._open_actions.pop(), "ok": True}
            self.log.admit("cognet:action:result", result, urgent=True)
        else:
            self._open_actions.append(uuid7())
            action = {"action": self._open_actions[-1], "code": "move()"}
            self.log.admit("cognet:action:python", action, urgent=True)

    def _field(self) -> None:
        """A stimulus with its driver's counter, and the mark that goes with it."""
        self._counter += 1
        channel, epoch = self._rng.choice(("cpu", "heat")), f"epoch-{self._counter // 40}"
        mark = Mark(channel=channel, source_id="", epoch=epoch, high=self._counter)
        captured = {"epoch": epoch, "ms": 1, "seq": self._counter}
        data = {"source": {"channel": channel}, "reading": {"value": self._counter}, "captured": captured}
        row = self.log.admit("cognet:stimulus:field", data, mark=mark)
        self._truth.marks.append((row.seq, mark))

    def _event(self) -> TelemetryEvent:
        note = Fact(message="y" * self._rng.choice((10, 2000)))
        return TelemetryEvent(type="kernel:boot", mono_us=mono_us(), after_seq=self.log.last_seq, data=note)


def _picture(ref: str) -> dict[str, Any]:
    return {"source": {"channel": "camera"}, "ref": ref, "kind": "image/jpeg", "width": 4, "height": 4}


def take_session(data: Path, tape: Tape, *, promised: Promise | None = None) -> Session:
    """A start's first act, on the record; without ``promised`` there is nothing to promise yet."""
    tape.note(promised or Promise())
    return Session.take(data, None)


def open_log(session: Session, media: MediaRing | None = None, **settings: Any) -> Log:
    """The product's log in a session's folder."""
    return Log.open(
        session.folder,
        agent_id="rover",
        session_id=session.id,
        boot_id=uuid7(),
        settings=msgspec.structs.replace(LogSettings(volatile_data=True, window_entries=64), **settings),
        media=media or MemoryRing(max_bytes=1_000_000),
    )


class Pinned:
    """Another program's transaction on the log, which keeps its write-ahead log from being used again."""

    def __init__(self, session: Path) -> None:
        self._connection: apsw.Connection | None = open_reader(session / "log.db")
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT count(*) FROM entry").fetchall()

    def end(self) -> None:
        """It lets go."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)
