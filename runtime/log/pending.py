"""What is admitted and waits for the writer: filled by the loop's thread, taken whole by the writer's."""

from __future__ import annotations

import time
from collections.abc import Collection
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import Any

from runtime.abi.link import Row
from runtime.log.settings import Mark

PATIENT_S = 0.002


class Haste(Enum):
    """How long an entry waits for others before it is written."""

    USUAL = auto()
    """As long as ``commit_interval_ms`` says."""
    PATIENT = auto()
    """Two milliseconds: nobody waits for it, and whoever caused it will soon admit something that can't wait."""
    URGENT = auto()
    """Not at all."""


class Batch:
    """Entries for one transaction: their columns in one flat list, so that binding them costs no Python per row."""

    __slots__ = ("columns", "last_seq", "marks", "size_bytes")

    def __init__(self) -> None:
        self.columns: list[Any] = []  # seq, type, body, chain, seq, type, ...
        self.marks: list[tuple[Mark, int]] = []  # with the seq of the entry each came with
        self.last_seq = 0
        self.size_bytes = 0

    def add(self, row: Row, link: bytes, mark: Mark | None) -> None:
        """Take one entry."""
        self.columns += (row.seq, row.type, row.body, link)
        self.last_seq = row.seq
        self.size_bytes += len(row.body)
        if mark is not None:
            self.marks.append((mark, row.seq))

    def join(self, later: Batch) -> None:
        """Put a later batch behind this one."""
        self.columns += later.columns
        self.marks += later.marks
        self.last_seq = later.last_seq or self.last_seq
        self.size_bytes += later.size_bytes

    def __len__(self) -> int:
        return len(self.columns) // 4


class Pending:
    """One batch that grows. Any thread may add, nudge and close; the rest is for the writer's."""

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = interval_s
        self._arrivals: SimpleQueue[tuple[Batch, Collection[Haste]] | None] = SimpleQueue()  # None is a nudge
        self._batch: Batch | None = None
        self._due = 0.0  # when the batch may be written, by the monotonic clock
        self.at_least_s = 0.0  # commits are held for so long, whatever the interval
        self.closed = False

    def add(self, batch: Batch, hastes: Collection[Haste]) -> None:
        """Queue entries; the hastiest of them decides, and takes along all that wait already."""
        self._arrivals.put((batch, hastes))

    def nudge(self) -> None:
        """Let a writer that waits look at what else there is to do."""
        self._arrivals.put(None)

    def close(self) -> None:
        """Let the writer take what is left, then end."""
        self.closed = True
        self._arrivals.put(None)

    def take(self, wait_s: float | None = None) -> Batch | None:
        """All that is due, once something is; None after ``wait_s`` without, a nudge, or when closed and empty."""
        give_up = None if wait_s is None else time.monotonic() + wait_s
        nudged = self._collect()
        while not self._ready():
            now = time.monotonic()
            if self.closed or nudged or (give_up is not None and now >= give_up):
                return None
            due = None if self._batch is None else self._due
            times = [t - now for t in (give_up, due) if t is not None]
            nudged = self._wait(max(min(times), 0.0) if times else None)
        batch, self._batch = self._batch, None
        return batch

    def pause(self, seconds: float) -> None:
        """Sleep, but not through a close."""
        until = time.monotonic() + seconds
        while not self.closed and (left_s := until - time.monotonic()) > 0:
            self._wait(left_s)

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return self._batch is not None or not self._arrivals.empty()

    def _ready(self) -> bool:
        return self._batch is not None and (self.closed or time.monotonic() >= self._due)

    def _wait(self, seconds: float | None) -> bool:
        """Until something arrives, or so long; whether it was a nudge."""
        try:
            arrival = self._arrivals.get(timeout=seconds)
        except Empty:
            return False
        return self._take_in(arrival) | self._collect()

    def _collect(self) -> bool:
        """Take in all that has arrived; whether a nudge was among it."""
        nudged = False
        while not self._arrivals.empty():
            nudged |= self._take_in(self._arrivals.get())
        return nudged

    def _take_in(self, arrival: tuple[Batch, Collection[Haste]] | None) -> bool:
        if arrival is None:
            return True
        batch, hastes = arrival
        hold_s = min(map(self._hold_s, hastes))
        due = time.monotonic() + hold_s if hold_s else 0.0
        if self._batch is None:
            self._batch, self._due = batch, due
        else:
            self._batch.join(batch)
            self._due = min(self._due, due)
        return False

    def _hold_s(self, haste: Haste) -> float:
        if haste is Haste.URGENT:
            return 0.0
        return PATIENT_S if haste is Haste.PATIENT else max(self._interval_s, self.at_least_s)
