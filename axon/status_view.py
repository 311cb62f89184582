"""How a run's figures look: a table that fits 80 columns and 24 lines, and the same as one plain line."""

from __future__ import annotations

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from runtime.abi.summary import ChannelCounts, Summary

MIN_ROWS = 4
NOTICES = 3
_CLOCKS_AGREE_S = 0.5
_FIXED_LINES = 8
"""The title, the four lines of figures, two headings, and the line where the cursor stands."""


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """A summary and when it was asked for, by the monotonic clock."""

    at_s: float
    summary: Summary


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Events a second between two beats, or since counting began."""

    wakes: float
    commits: float
    stimuli: dict[str, float]


def rates(now: Beat, before: Beat | None) -> Rates:
    """What happened a second. Where counting began anew between two beats, since then."""
    after = now.summary
    past = before.summary if before and _goes_on(now, before) else None
    took_s = max(after.seconds - past.seconds if past else after.seconds, 1e-3)
    known = past.stimuli if past else {}
    return Rates(
        wakes=(after.wakes.admitted - (past.wakes.admitted if past else 0)) / took_s,
        commits=(after.commits - (past.commits if past else 0)) / took_s,
        stimuli={
            name: max(0, counts.received - known.get(name, ChannelCounts()).received) / took_s
            for name, counts in after.stimuli.items()
        },
    )


def _goes_on(now: Beat, before: Beat) -> bool:
    """Whether the kernel counted through between the two: its own seconds then agree with ours."""
    counted_s = now.summary.seconds - before.summary.seconds
    same_boot = now.summary.boot.boot_id == before.summary.boot.boot_id
    return same_boot and counted_s > 0 and abs(counted_s - (now.at_s - before.at_s)) < _CLOCKS_AGREE_S


def line(now: Beat, before: Beat | None) -> str:
    """One line for a file or a journal."""
    summary, flow = now.summary, rates(now, before)
    stimuli = " ".join(f"{name} {flow.stimuli[name]:.0f}/s" for name in _shown(summary.stimuli, 6)[0])
    memory = " ".join(f"{name} {use.rss_mb:.0f} MB" for name, use in summary.processes.items())
    parts = [
        f"{flow.wakes:.1f} wakes/s",
        f"late p99 {_ms(summary.wakes.late_ms.p99)}",
        f"{flow.commits:.0f} commits/s",
        f"commit p99 {_ms(summary.commit_ms.p99)}",
        f"{summary.last_seq} entries",
        stimuli,
        memory,
        *_troubles(summary),
    ]
    return " | ".join(part for part in parts if part)


def table(now: Beat, before: Beat | None, *, height: int) -> RenderableType:
    """The live picture; what doesn't fit the terminal is counted instead."""
    summary, flow = now.summary, rates(now, before)
    troubles = _troubles(summary)
    room = max(2 * MIN_ROWS, height - _FIXED_LINES - len(troubles))
    spare = room - len(summary.stimuli) - len(summary.processes)
    process_rows = min(len(summary.processes), max(room // 2, room - len(summary.stimuli)))
    parts: list[RenderableType] = [
        Text(f"{summary.agent}  session {summary.session}  {summary.seconds:.0f} s", style="bold", overflow="ellipsis"),
        _head(summary, flow),
        *([Text()] if spare >= 1 else []),
        _channels(summary, flow, room - process_rows),
        *([Text()] if spare >= 2 else []),
        _processes(summary, process_rows),
        *(Text(trouble, style="bold yellow", overflow="ellipsis", no_wrap=True) for trouble in troubles),
    ]
    return Group(*parts)


def _head(summary: Summary, flow: Rates) -> Table:
    grid = Table.grid(padding=(0, 2))
    wakes, late, commit = summary.wakes, summary.wakes.late_ms, summary.commit_ms
    grid.add_row(
        "wakes/s", f"{flow.wakes:.1f}", f"late p50 {_ms(late.p50)}", f"p99 {_ms(late.p99)}", f"max {_ms(late.max)}"
    )
    grid.add_row("", "", f"open at once {wakes.max_overlap}", f"missed {wakes.missed}", f"failed {wakes.failed}")
    grid.add_row(
        "commits/s",
        f"{flow.commits:.1f}",
        f"took p50 {_ms(commit.p50)}",
        f"p99 {_ms(commit.p99)}",
        f"max {_ms(commit.max)}",
    )
    grid.add_row("entries", f"{summary.last_seq:,}", f"media {summary.media_mb:.0f} MB", _sandbox(summary), "")
    return grid


def _sandbox(summary: Summary) -> str:
    return "sandboxed" if summary.sandboxed else "no sandbox"


def _channels(summary: Summary, flow: Rates, rows: int) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("stimuli", no_wrap=True, max_width=24, overflow="ellipsis")
    for name in ("/s", "received", "committed", "duplicates", "rejected", "gaps"):
        grid.add_column(name, justify="right", no_wrap=True)
    names, left_out = _shown(summary.stimuli, rows)
    for name in names:
        counts = summary.stimuli[name]
        figures = (counts.received, counts.committed, counts.duplicates, counts.rejected, counts.gaps)
        grid.add_row(name, f"{flow.stimuli[name]:.1f}", *(f"{figure:,}" for figure in figures))
    if left_out:
        grid.add_row(f"and {left_out} more")
    return grid


def _processes(summary: Summary, rows: int) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("process", no_wrap=True, max_width=24, overflow="ellipsis")
    for name in ("memory", "cpu", "restarts"):
        grid.add_column(name, justify="right", no_wrap=True)
    names = list(summary.processes)
    for name in names[: rows if len(names) <= rows else rows - 1]:
        use = summary.processes[name]
        grid.add_row(name, f"{use.rss_mb:.0f} MB", f"{use.cpu_percent:.0f} %", str(use.restarts))
    if len(names) > rows:
        grid.add_row(f"and {len(names) - rows + 1} more")
    return grid


def _shown(stimuli: dict[str, ChannelCounts], rows: int) -> tuple[list[str], int]:
    """The channels that fit, the busiest ones where not all do, and how many don't."""
    if len(stimuli) <= rows:
        return list(stimuli), 0
    busiest = sorted(stimuli, key=lambda name: -stimuli[name].received)[: max(rows - 1, 0)]
    return sorted(busiest), len(stimuli) - len(busiest)


def _troubles(summary: Summary) -> list[str]:
    """What a person should know before anything else."""
    found = []
    if summary.stopped:
        found.append("EMERGENCY STOP is latched: `axon stop DIR --clear` clears it")
    if gone := [name for name, state in summary.actuators.items() if state == "gone"]:
        found.append(f"actuators that aren't heard: {', '.join(gone)}")
    if summary.brain != "up":
        found.append(f"BRAIN: {summary.brain.splitlines()[0]}")
    if summary.storage != "ok":
        found.append(f"STORAGE {summary.storage}: what is admitted isn't durable")
    refused = ", ".join(f"{code} {count:,}" for code, count in sorted(summary.refused.items()) if count)
    if refused:
        found.append(f"refused input: {refused}")
    return [*found, *summary.notices[-NOTICES:]]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"
