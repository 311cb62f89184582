"""The 30 Hz rhythm of the rover beside a bare sleeping loop, with a good disk and a bad card, and its cost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.agents import ROOT, agent, run
from bench.figure import Figure, at_least, at_most, median, percentile

RUNS = 5
SECONDS = 20.0
BESIDE = "p99 of a bare clock_nanosleep loop beside it, ms"


def beside(seconds: float, log: str = "") -> tuple[dict[str, Any], float]:
    """A run of the rover's summary, and the p99 lateness of a bare loop that ran beside it."""
    with agent(sensors=True, log=log) as folder:
        bare = subprocess.Popen(
            [sys.executable, "-m", "bench.bare_clock", str(seconds)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        summary = run(folder, seconds)
        late = json.loads(bare.communicate()[0])
    return summary, percentile(late, 99)


def figures() -> Iterator[Figure]:
    """All figures of the rhythm."""
    summary, _ = beside(60.0)
    yield at_least("wakes_admitted_60s", summary["wakes"]["admitted"], 1799, "wakes", "30 Hz for 60 s", 1800)
    yield from cost(summary)
    yield from lateness("lateness_p99", "", extra_ms=1.0)
    yield from lateness("lateness_p99_sync_120ms", "sync_delay_ms = 120", extra_ms=3.0)


def lateness(name: str, log: str, *, extra_ms: float) -> Iterator[Figure]:
    """Lateness of several runs against 1.5 x the bare loop plus an allowance; the run of the median margin counts."""
    runs = [beside(SECONDS, log) for _ in range(RUNS)]
    margins = [s["wakes"]["late_ms"]["p99"] - (1.5 * bare + extra_ms) for s, bare in runs]
    summary, bare = runs[margins.index(median(margins))]
    yield at_most(name, summary["wakes"]["late_ms"]["p99"], 1.5 * bare + extra_ms, "ms", BESIDE, bare)
    missed = max(s["wakes"]["missed"] for s, _ in runs)
    yield at_most(name.replace("lateness_p99", "wakes_missed"), missed, 0, "wakes", "none of all runs", None)


def cost(summary: dict[str, Any]) -> Iterator[Figure]:
    """Memory and processor use of kernel and brain in the main job."""
    kernel, brain = summary["processes"]["kernel"], summary["processes"]["brain"]
    yield at_most("kernel_rss", kernel["rss_mb"], 60, "MB", "media ring apart", None)
    yield at_most("brain_rss", brain["rss_mb"], 45, "MB", "resident", None)
    both = kernel["cpu_percent"] + brain["cpu_percent"]
    yield at_most("kernel_and_brain_cpu", both, 20, "% of a core", "the whole rover", None)
