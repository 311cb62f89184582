"""What a run counts: wakes, lateness, commits, stimuli, processes; from one moment on, as a ``Summary``."""

from __future__ import annotations

from collections import deque

import psutil

from runtime.abi.clock import mono_us
from runtime.abi.summary import ChannelCounts, ProcessUse, Spread

KEPT = 200_000
MB = 1e6


def spread(values: list[float]) -> Spread:
    """Nearest-rank percentiles, rounded to a microsecond of a millisecond scale."""
    if not values:
        return Spread()
    ordered = sorted(values)
    rank = max(0, -(-len(ordered) * 99 // 100) - 1)
    return Spread(p50=round(ordered[(len(ordered) - 1) // 2], 3), p99=round(ordered[rank], 3), max=round(ordered[-1], 3))


class WakeCounts:
    """The brain's wakes since counting began."""

    def __init__(self) -> None:
        self.admitted = self.completed = self.failed = self.interrupted = self.missed = self.max_overlap = 0
        self.late_us: deque[int] = deque(maxlen=KEPT)

    def began(self, late_us: int | None, overlap: int) -> None:
        """A wake was admitted."""
        self.admitted += 1
        self.max_overlap = max(self.max_overlap, overlap)
        if late_us is not None:
            self.late_us.append(late_us)

    def ended(self, outcome: str) -> None:
        """A wake ended."""
        if outcome == "complete":
            self.completed += 1
        elif outcome == "interrupted":
            self.interrupted += 1
        else:
            self.failed += 1


class StimulusCounts:
    """What became of stimuli, by channel; committed counts what arrived since counting began and is durable."""

    def __init__(self) -> None:
        self.channels: dict[str, dict[str, int]] = {}
        self._waiting: deque[tuple[int, str]] = deque()

    def took(self, channel: str, *, outcome: str, seq: int, gaps: int) -> None:
        """One stimulus arrived."""
        counts = self._of(channel)
        counts["received"] += 1
        counts["gaps"] += gaps
        if outcome == "admitted":
            self._waiting.append((seq, channel))
        elif outcome == "duplicate":
            counts["duplicates"] += 1
        elif outcome == "refused":
            counts["rejected"] += 1

    def gap(self, channel: str) -> None:
        """A driver told that it dropped some."""
        self._of(channel)["gaps"] += 1

    def durable(self, seq: int) -> None:
        """All up to that entry is on the disk."""
        while self._waiting and self._waiting[0][0] <= seq:
            self._of(self._waiting.popleft()[1])["committed"] += 1

    def counts(self) -> dict[str, ChannelCounts]:
        """The present figures."""
        return {name: ChannelCounts(**counts) for name, counts in sorted(self.channels.items())}

    def _of(self, channel: str) -> dict[str, int]:
        return self.channels.setdefault(channel, {field: 0 for field in ChannelCounts.__struct_fields__})


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
    """All figures of a run; ``begin`` forgets what came before."""

    def __init__(self) -> None:
        self.process_meter = ProcessMeter()
        self.begin()

    def begin(self) -> None:
        """Count from now."""
        self.since_us = mono_us()
        self.until_us: int | None = None
        self.wakes = WakeCounts()
        self.stimuli = StimulusCounts()
        self.commit_ms: deque[float] = deque(maxlen=KEPT)
        self.commits = 0
        self.process_meter.restart()

    def finish(self) -> None:
        """Stop the clock of the run; later events don't count as its rhythm."""
        self.until_us = mono_us()

    @property
    def seconds(self) -> float:
        """How long has been counted."""
        return ((self.until_us or mono_us()) - self.since_us) / 1e6

    def committed(self, seconds: list[float]) -> None:
        """Durations of transactions that ended."""
        self.commits += len(seconds)
        self.commit_ms.extend(1000 * value for value in seconds)
