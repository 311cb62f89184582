"""An ingest on a small log and media store that are real but only in memory."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from runtime.abi.errors import AxonError
from runtime.abi.link import Row
from runtime.abi.marks import Mark
from runtime.ingest.ingest import Ingest, Taken

AGENT = "rover"


class MemoryLog:
    """Admits like the log; durability is said by the test."""

    def __init__(self) -> None:
        self.rows: list[tuple[Row, msgspec.Struct]] = []
        self.marks: dict[tuple[str, str, str], Mark] = {}
        self.refuse_with: AxonError | None = None

    def admit(self, type_: str, data: msgspec.Struct, *, mark: Mark | None = None) -> Row:
        if self.refuse_with is not None:
            raise self.refuse_with
        row = Row(len(self.rows) + 1, type_, msgspec.json.encode(data))
        self.rows.append((row, data))
        if mark is not None:
            self.marks.pop((mark.channel, mark.source_id, mark.epoch), None)
            self.marks[mark.channel, mark.source_id, mark.epoch] = mark
        return row

    def marks_found(self) -> list[Mark]:
        """As the log gives them when it opens: in the order of their last entries, all but the last retired."""
        live = {(mark.channel, mark.source_id): mark.epoch for mark in self.marks.values()}
        return [
            msgspec.structs.replace(mark, retired=live[mark.channel, mark.source_id] != mark.epoch)
            for mark in self.marks.values()
        ]


class MemoryMedia:
    """Keeps bytes by their digest."""

    def __init__(self) -> None:
        self.staged: dict[str, bytes] = {}

    def stage(self, data: bytes) -> str:
        ref = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.staged[ref] = data
        return ref


class World:
    """An ingest with everything around it in reach; ``now_us`` is its clock."""

    def __init__(
        self, *, transient: tuple[str, ...] = (), marks: tuple[Mark, ...] = (), log: MemoryLog | None = None
    ) -> None:
        self.log = log or MemoryLog()
        self.media = MemoryMedia()
        self.told: list[tuple[str, msgspec.Struct]] = []
        self.now_us = 0
        self.ingest = Ingest(
            agent=AGENT,
            log_admit=self.log.admit,
            media=self.media,
            marks=marks or self.log.marks_found(),
            transient=frozenset(transient),
            tell=lambda type_, data: self.told.append((type_, data)),
            clock=lambda: self.now_us,
        )

    def field(
        self,
        channel: str = "imu",
        value: object = 1.5,
        *,
        seq: int | None = None,
        epoch: str = "e1",
        id_: str | None = None,
        retained: bool = False,
    ) -> Taken:
        """Send a reading, with a counter if ``seq`` is given."""
        message: dict[str, object] = {"reading": {"value": value}}
        if seq is not None:
            message["captured"] = {"epoch": epoch, "ms": 1, "seq": seq}
        if id_ is not None:
            message["id"] = id_
        return self.raw("field", channel, msgspec.json.encode(message), retained=retained)

    def raw(self, kind: str, channel: str, payload: bytes, *, retained: bool = False) -> Taken:
        return self.ingest.take(f"axon/{AGENT}/stimulus/{kind}/{channel}", payload, retained)

    def committed(self, durable_seq: int | None = None) -> list[tuple[str, str | None, str, int]]:
        """What is confirmed when all, or so much, is durable."""
        upto = len(self.log.rows) if durable_seq is None else durable_seq
        return [(channel, c.id, c.epoch, c.seq) for channel, c in self.ingest.committed(upto)]

    def events(self, type_: str) -> list[msgspec.Struct]:
        return [data for name, data in self.told if name == type_]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="session")
def make_world() -> type[World]:
    return World
