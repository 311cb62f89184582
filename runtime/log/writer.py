"""The writer: one thread that makes batches durable, and after an error finds out what the disk really has."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import apsw

from runtime.abi.clock import wall_ms
from runtime.abi.errors import StorageFailed
from runtime.abi.link import Row
from runtime.durable.space import Reserve, is_full
from runtime.log import chain
from runtime.log.narration import Narration
from runtime.log.pending import Batch, Pending
from runtime.log.settings import Flushes, State
from runtime.log.storage import Storage

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
CHECKPOINT_AGAIN_S = 5.0
"""How long after a checkpoint that failed the next one is tried: the write-ahead log holds everything meanwhile."""
SPACE_S = 2.0
"""How often a full disk is looked at again."""
CROWDED_PAGES = 4000
"""A reader keeps so many pages (16 MB) of the write-ahead log: telemetry waits and commits come once a second."""
CROWDED_S = 1.0
WAL_FULL_PAGES = 13_000
"""It keeps so many (54 MB): as on a full disk, new stimuli are refused, until it has gone."""
SWEEP_S = 0.02
"""The least time between two deletions of sealed rows."""
OVERDUE_S = 0.2
"""After so long without one they don't wait for a quiet moment any more."""


class Writer:
    """Calls ``settled(seq, bytes)``, ``changed(state, reason)`` and ``low(low)`` in its thread, in their order."""

    def __init__(
        self,
        storage: Storage,
        *,
        pending: Pending,
        narration: Narration,
        media: Flushes,
        held: Callable[[int], list[Row]],
        durable: tuple[int, bytes],
        reserve: Reserve,
    ) -> None:
        self._storage = storage
        self._pending = pending
        self._narration = narration
        self._media = media
        self._held = held  # the rows in memory above a seq
        self._durable_seq, self._durable_chain = durable
        self._state: State = "ok"
        self._reserve = reserve
        self._low = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self.settled: Callable[[int, int], None] = lambda _seq, _size_bytes: None
        self.changed: Callable[[State, str], None] = lambda _state, _reason: None
        self.low: Callable[[bool], None] = lambda _low: None
        self.ended: Callable[[], None] = lambda: None
        self.commit_s: deque[float] = deque(maxlen=100_000)
        self._checkpoint_from = 0.0
        self.suspect: int | None = None  # a reader met damage here
        self.clean = False  # whether the end is to be marked as one
        self._acts: deque[tuple[Callable[[apsw.Connection], None], Future[None]]] = deque()
        self._acts_over = False
        self.low_reason = "the disk is full"
        self._swept_at = 0.0

    def start(self) -> None:
        """Begin to write what is pending."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end. Blocks."""
        self._thread.join()

    @property
    def durable_seq(self) -> int:
        """The last entry that is on the disk. Any thread."""
        return self._durable_seq

    def ask(self, act: Callable[[apsw.Connection], None]) -> Future[None]:
        """Have a change made in a transaction of its own, between two commits of entries. Any thread.

        It may be done again after an error, so doing it twice must change nothing. Cancelled when the writer ends.
        """
        future: Future[None] = Future()
        self._acts.append((act, future))
        self._pending.nudge()
        if self._acts_over:  # it ended meanwhile
            future.cancel()
        return future

    def _run(self) -> None:
        try:
            self._watch_space(full=not self._reserve.take())
            while not self._pending.closed or self._pending:
                batch = self._pending.take(self._wait_s())
                if batch is not None:
                    self._attempt(batch, self._narration.due())
                self._upkeep()
                if self._low:
                    self._look_again()
            self._finish()
        except BaseException as error:
            self._change("failed", f"the writer ended: {error!r}")
            raise
        finally:
            self._storage.close()
            self._cancel_acts()
            self.ended()

    def _wait_s(self) -> float | None:
        """How long to wait for entries: there may be something else to do."""
        if self._acts or self._storage.unswept:
            return SWEEP_S
        return SPACE_S if self._low else None

    def _upkeep(self) -> None:
        """One thing for the segments, when the time is good for it or when it has waited for long."""
        waited = time.monotonic() - self._swept_at
        if self._pending.closed or waited < (OVERDUE_S if self._pending else SWEEP_S):
            return
        try:
            if self._acts:
                self._storage.act(self._acts[0][0])
                self._acts.popleft()[1].set_result(None)
            elif self._storage.unswept:
                self._storage.sweep()
            else:
                return
        except (apsw.Error, OSError) as error:
            self._regain(Batch(), error)
            self._swept_at = time.monotonic() + SPACE_S  # it can wait, entries can't
            return
        self._swept_at = time.monotonic()
        self._tidy()

    def _cancel_acts(self) -> None:
        self._acts_over = True
        while self._acts:
            self._acts.popleft()[1].cancel()

    def _attempt(self, batch: Batch, telemetry: bool) -> None:  # noqa: FBT001 - private, two callers
        events = self._narration.pack() if telemetry else []
        began = time.monotonic()
        try:
            self._media.flush()
            self._storage.write(batch, events)
        except (apsw.Error, OSError) as error:
            self._narration.put_back(events)
            self._regain(batch, error)
            return
        self.commit_s.append(time.monotonic() - began)
        self._settle(batch)
        self._tidy()

    def _settle(self, batch: Batch) -> None:
        if batch.columns:
            self._durable_seq, self._durable_chain = batch.last_seq, batch.columns[-1]
            self.settled(batch.last_seq, batch.size_bytes)

    def _watch_space(self, *, full: bool) -> None:
        """Below the reserve, telemetry waits and only what may use it is admitted."""
        if full != self._low:
            self._low = self._narration.suspended = full
            self.low(full)

    def _look_again(self) -> None:
        """Whether there is room again: on the disk, and in the write-ahead log."""
        if self._storage.kept_pages > WAL_FULL_PAGES:
            self._tidy(now=True)
        if self._storage.kept_pages <= WAL_FULL_PAGES:
            self.low_reason = "the disk is full"
            self._watch_space(full=not self._reserve.take())

    def _watch_wal(self) -> None:
        """A transaction of another process may keep the write-ahead log from being used again; it stays bounded."""
        kept = self._storage.kept_pages
        self._pending.at_least_s = CROWDED_S if kept > CROWDED_PAGES else 0.0
        self._narration.suspended = self._low or kept > CROWDED_PAGES
        if kept > WAL_FULL_PAGES and not self._low:
            self.low_reason = "another program holds a transaction on log.db open, and its write-ahead log is full"
            self._watch_space(full=True)

    def _tidy(self, *, now: bool = False) -> None:
        """What can wait until the batch is acknowledged."""
        try:
            if self.suspect is not None:
                self._storage.suspect(self.suspect)
                self.suspect = None
            if time.monotonic() >= self._checkpoint_from:
                self._storage.checkpoint(last_seq=self._durable_seq, idle=not self._pending, now=now)
                self._watch_wal()
        except (apsw.Error, OSError) as error:
            self._checkpoint_from = time.monotonic() + CHECKPOINT_AGAIN_S
            self._regain(Batch(), error)

    def _regain(self, batch: Batch, error: Exception) -> None:
        """The outcome is unknown: acknowledge nothing until a new opening shows what is there and a commit holds."""
        self._change("recovering", str(error))
        self._make_room(error)
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                seq, link = self._storage.reopen()
                again = self._above(seq, link, batch)
                self._media.flush()
                self._storage.prove(again)
            except (apsw.Error, OSError) as failure:
                self._storage.close()
                self._make_room(failure)
                self._change("failed", str(failure))
                if self._pending.closed:
                    return
                self._pending.pause(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                self._change("ok", "")
                self._settle(batch)
                return

    def _make_room(self, error: Exception) -> None:
        """On a full disk media go first, then telemetry; then entries have what was kept for them."""
        if is_full(error):
            self._media.shed()
            self._reserve.give_up()
            self._watch_space(full=True)

    def _above(self, seq: int, link: bytes, batch: Batch) -> Batch:
        """What the disk lacks, byte for byte as it was admitted; ``seq`` and ``link`` are the last it has."""
        again = Batch()
        again.marks = batch.marks
        first = batch.columns[0] if batch.columns else self._durable_seq + 1
        if seq >= first:
            at = 4 * (seq - first + 1)
            if at > len(batch.columns) or batch.columns[at - 1] != link:
                raise StorageFailed(f"the log has an entry {seq} that this kernel didn't write", seq=seq)
            again.columns = batch.columns[at:]
        else:
            again.columns = self._lost(seq, link, first) + batch.columns
        again.last_seq = batch.last_seq
        return again

    def _lost(self, seq: int, link: bytes, first: int) -> list[object]:
        """Acknowledged entries that the disk had confirmed and doesn't have; memory may still hold them."""
        rows = self._held(seq)[: first - 1 - seq]
        columns: list[object] = []
        for row in rows:
            link = chain.link(link, seq=row.seq, body_digest=chain.digest(row.body))
            columns += (row.seq, row.type, row.body, link)
        if link != self._durable_chain:
            raise StorageFailed(f"the disk lost entries after {seq} that it had confirmed", seq=seq + 1)
        return columns

    def _change(self, state: State, reason: str) -> None:
        if state != self._state:
            self._state = state
            self.changed(state, reason)

    def _finish(self) -> None:
        if self._state != "ok":
            return
        if self._narration.due(closing=True):
            self._attempt(Batch(), telemetry=True)
        if self.clean and self._state == "ok":
            try:
                self._storage.finish(ended_ms=wall_ms())
            except (apsw.Error, OSError) as error:
                self._change("failed", str(error))
