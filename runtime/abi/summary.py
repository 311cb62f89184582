"""The summary of a run, as ``axon run --summary`` writes it and ``status`` shows it."""

from __future__ import annotations

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """What every part has in common."""


class Spread(_Part, frozen=True, kw_only=True):
    """Percentiles of one run; milliseconds; None where nothing was measured."""

    p50: float | None = None
    p99: float | None = None
    max: float | None = None


class Wakes(_Part, frozen=True, kw_only=True):
    """The brain's rhythm; ``missed`` periods its clock skipped."""

    admitted: int
    completed: int
    failed: int
    interrupted: int
    missed: int
    max_overlap: int
    hz: float
    late_ms: Spread


class ChannelCounts(_Part, frozen=True, kw_only=True):
    """What became of the stimuli of one channel."""

    received: int = 0
    committed: int = 0
    duplicates: int = 0
    rejected: int = 0
    gaps: int = 0


class Boot(_Part, frozen=True, kw_only=True):
    """How this start began; ``replayed`` entries were in the session's log."""

    boot_id: str
    clean_before: bool
    replayed: int
    replay_ms: float
    brain_folded: int
    first_wake_ms: float | None


class ProcessUse(_Part, frozen=True, kw_only=True):
    """What one process takes; ``cpu_percent`` of one core; the kernel's ``rss_mb`` leaves the media ring out."""

    rss_mb: float
    cpu_percent: float
    restarts: int


class Summary(_Part, frozen=True, kw_only=True):
    """One run, or the part of it that is being counted."""

    agent: str
    session: str
    seconds: float
    wakes: Wakes
    stimuli: dict[str, ChannelCounts]
    commit_ms: Spread
    commits: int
    entries: int
    last_seq: int
    boot: Boot
    processes: dict[str, ProcessUse]
    media_mb: float
    sandboxed: bool
    storage: str
    stopped: bool
    refused: dict[str, int]
    brain: str = "up"
    """``up``, ``loading``, or why it can't be loaded."""
    notices: list[str] = []
    """What the kernel last said to the person at its terminal."""
    actuators: dict[str, str] = {}
    """What each actuator does: ``safe``, ``moving``, ``stopped``, or ``gone``."""
