"""What is admitted and waits for the writer: filled by the loop's thread, taken whole by the writer's."""

from __future__ import annotations

import threading
import time
from typing import Any

from runtime.abi.link import Row
from runtime.log.settings import Mark


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
    """One batch that grows, and a bell for the writer."""

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = interval_s
        self._bell = threading.Condition()
        self._batch = Batch()
        self._due: float | None = None  # when the batch may be written, by the monotonic clock
        self._waiting = False
        self._nudged = False
        self.at_least_s = 0.0  # commits are held for so long, whatever the interval
        self.closed = False

    def add(self, batch: Batch, *, urgent: bool) -> None:
        """Queue entries; ``urgent`` ones, and all that wait with them, are written at once."""
        with self._bell:
            self._batch.join(batch)
            if self._due is None or urgent:
                hold_s = max(self._interval_s, self.at_least_s)
                self._due = 0.0 if urgent or not hold_s else time.monotonic() + hold_s
                if self._waiting:
                    self._bell.notify()

    def nudge(self) -> None:
        """Let a writer that waits look at what else there is to do."""
        with self._bell:
            self._nudged = True
            self._bell.notify()

    def close(self) -> None:
        """Let the writer take what is left, then end."""
        with self._bell:
            self.closed = True
            self._bell.notify()

    def take(self, wait_s: float | None = None) -> Batch | None:
        """All that is due, once something is; None after ``wait_s`` without, a nudge, or when closed and empty."""
        give_up = None if wait_s is None else time.monotonic() + wait_s
        with self._bell:
            while not self._ready():
                if self.closed:
                    return None
                now = time.monotonic()
                if self._nudged or (give_up is not None and now >= give_up):
                    self._nudged = False
                    return None
                times = [t - now for t in (give_up, self._due) if t is not None]
                self._waiting = True
                self._bell.wait(max(min(times), 0.0) if times else None)
                self._waiting = False
            batch, self._batch, self._due = self._batch, Batch(), None
            return batch

    def pause(self, seconds: float) -> None:
        """Sleep, but not through a close."""
        with self._bell:
            if not self.closed:
                self._bell.wait_for(lambda: self.closed, seconds)

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return self._due is not None

    def _ready(self) -> bool:
        return self._due is not None and (self.closed or time.monotonic() >= self._due)
