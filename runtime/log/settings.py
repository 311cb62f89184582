"""What the log is told when it opens, and what it tells about the opening."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

from runtime.abi.marks import Mark as Mark

RESERVE_NAME = "log.reserve"
MAX_BODY_BYTES = 256 * 1024
MAX_BACKLOG_BYTES = 16 * 1024 * 1024
MAX_RESERVED_BACKLOG_BYTES = 32 * 1024 * 1024
MAX_OUTPUT_RESERVE_BYTES = 3 * 1024 * 1024
"""What outputs may use of a full disk's reserve of 8 MB; the rest is for interrupts and stops."""

State: TypeAlias = Literal["ok", "recovering", "failed"]
"""``recovering``: an error's effect is being found out; ``failed``: the disk can't be written, tried again for ever."""


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the log writes; ``window_entries`` rows stay in the kernel's memory.

    ``seal_*`` say when the oldest entries move into segments, the other three which bounds those keep; 0: none.
    """

    commit_interval_ms: int = 0
    sync_delay_ms: int = 0
    volatile_data: bool = False
    window_entries: int = 1024
    telemetry_events: int = 200_000
    seal_bytes: int = 128_000_000
    seal_age_s: float = 0
    retain_bytes: int = 0
    retain_age_s: float = 0
    min_free_bytes: int = 0
    vfs: str | None = None  # SQLite's name of a file layer, for tests that break it


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What was found when the log was opened; ``replayed`` entries were in it, opening took ``replay_ms``."""

    clean_before: bool
    first_boot: bool
    replayed: int
    replay_ms: float
    last_seq: int
    boots: int
    unclean_boots: int
    actions_closed: int = 0
    damage: str | None = None
    set_aside: str | None = None


class Flushes(Protocol):
    """What the log asks of the media store: to keep what was staged, before the rows that refer to it."""

    def flush(self) -> None:
        """Called in the writer's thread before each commit of entries; never raises."""

    def shed(self) -> None:
        """Called in the writer's thread when the disk is full: give its room to the entries; never raises."""
