"""What a run counts: wakes, lateness, commits, stimuli, processes; from one moment on, as a ``Summary``."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import psutil

from runtime.abi.clock import mono_us
from runtime.abi.summary import ChannelCounts, ProcessUse, Spread

KEPT = 200_000
MB = 1e6
Counts: TypeAlias = dict[str, ChannelCounts]


def spread(values: list[float]) -> Spread:
    """Nearest-rank percentiles, rounded to a microsecond of a millisecond scale."""
    if not values:
        return Spread()
    ordered = sorted(values)
    rank = max(0, -(-len(ordered) * 99 // 100) - 1)
    return Spread(
        p50=round(ordered[(len(ordered) - 1) // 2], 3), p99=round(ordered[rank], 3), max=round(ordered[-1], 3)
    )


class WakeCounts:
    """The brain's wakes that were admitted while counting is ``on``."""

    def __init__(self) -> None:
        self.on = True
        self._first = 0
        self.admitted = self.completed = self.failed = self.interrupted = self.missed = self.max_overlap = 0
        self.late_us: deque[int] = deque(maxlen=KEPT)

    def began(self, ordinal: int, *, late_us: int | None, overlap: int) -> None:
        """A wake was admitted."""
        if not self.on:
            return
        self._first = self._first or ordinal
        self.admitted += 1
        self.max_overlap = max(self.max_overlap, overlap)
        if late_us is not None:
            self.late_us.append(late_us)

    def ended(self, ordinal: int, outcome: str) -> None:
        """A wake ended; one that was open when counting began isn't counted."""
        if not self.on or not self._first or ordinal < self._first:
            return
        if outcome == "complete":
            self.completed += 1
        elif outcome == "interrupted":
            self.interrupted += 1
        else:
            self.failed += 1

    def skipped(self, count: int) -> None:
        """A clock skipped periods."""
        if self.on:
            self.missed += count


class ProcessMeter:
    """Memory and processor use of the kernel and its children, sampled in a thread by ``sample``."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, psutil.Process, float, int]] = {}
        self.latest: dict[str, ProcessUse] = {}

    def restart(self) -> None:
        """Measure processor use from now on."""
        self._seen.clear()

    def sample(self, pids: dict[str, tuple[int, int]], media_bytes: int) -> None:
        """Look at every process once; blocking (reads /proc). ``cpu_percent`` is the mean since first seen."""
        latest: dict[str, ProcessUse] = {}
        for name, (pid, restarts) in pids.items():
            try:
                latest[name] = self._look(name, pid, restarts, media_bytes if name == "kernel" else 0)
            except psutil.Error:
                latest[name] = ProcessUse(rss_mb=0.0, cpu_percent=0.0, restarts=restarts)
        self.latest = latest

    def _look(self, name: str, pid: int, restarts: int, media_bytes: int) -> ProcessUse:
        if not pid:
            raise psutil.NoSuchProcess(pid)
        known = self._seen.get(name)
        if known is None or known[0] != pid:
            process = psutil.Process(pid)
            times = process.cpu_times()
            known = self._seen[name] = (pid, process, times.user + times.system, mono_us())
        _, process, cpu_before, since_us = known
        times = process.cpu_times()
        elapsed_s = max((mono_us() - since_us) / 1e6, 1e-9)
        cpu = (times.user + times.system - cpu_before) / elapsed_s if elapsed_s > 0.05 else 0.0
        rss = max(process.memory_info().rss - media_bytes, 0)
        return ProcessUse(rss_mb=round(rss / MB, 1), cpu_percent=round(100 * cpu, 1), restarts=restarts)


class Statistics:
    """All figures of a run; ``begin`` forgets what came before, ``finish`` lets nothing more count."""

    def __init__(self) -> None:
        self.process_meter = ProcessMeter()
        self.begin({})

    def begin(self, counts: Counts) -> None:
        """Count from now; ``counts`` are the stimuli so far."""
        self._since_us = mono_us()
        self._until_us: int | None = None
        self._before = counts
        self._after: Counts | None = None
        self._last_seq = 0
        self.wakes = WakeCounts()
        self.commit_ms: deque[float] = deque(maxlen=KEPT)
        self.commits = 0
        self.process_meter.restart()

    def finish(self, counts: Counts, last_seq: int) -> None:
        """Stop counting; of the stimuli so far those up to ``last_seq`` may still become durable."""
        self._until_us, self._after, self._last_seq = mono_us(), counts, last_seq
        self.wakes.on = False

    @property
    def seconds(self) -> float:
        """How long has been counted."""
        return ((self._until_us or mono_us()) - self._since_us) / 1e6

    def committed(self, seconds: list[float]) -> None:
        """Durations of transactions that ended."""
        if self._until_us is None:
            self.commits += len(seconds)
            self.commit_ms.extend(1000 * value for value in seconds)

    def stimuli(self, counts: Counts, durable_seq: int) -> Counts:
        """What became of the stimuli that arrived while counting; ``counts`` are all until now."""
        settled = self._after is not None and durable_seq >= self._last_seq
        shown = {
            name: _since(self._before.get(name, ChannelCounts()), now, settled=settled)
            for name, now in sorted((self._after or counts).items())
        }
        return {name: value for name, value in shown.items() if value != ChannelCounts()}


def _since(before: ChannelCounts, now: ChannelCounts, *, settled: bool) -> ChannelCounts:
    """The difference. What was under way to the disk at the beginning counts as before it.

    ``settled``: all that had been admitted at the end is on the disk since.
    """
    committed = _admitted(now) if settled else now.committed
    return ChannelCounts(
        received=now.received - before.received,
        committed=max(0, committed - _admitted(before)),
        duplicates=now.duplicates - before.duplicates,
        rejected=now.rejected - before.rejected,
        gaps=now.gaps - before.gaps,
    )


def _admitted(counts: ChannelCounts) -> int:
    return counts.received - counts.duplicates - counts.rejected
