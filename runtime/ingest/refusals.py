"""Refusals, counted one by one and reported in sums, so that a flood of bad input is no flood of telemetry."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from runtime.abi.telemetry import Refused

PERIOD_US = 1_000_000
MAX_KINDS = 32
_EXAMPLE_CHARS = 400


class Refusals:
    """One event a second at most for each code and channel, and at most ``MAX_KINDS`` a second by channel.

    The first refusal after a quiet second is reported at once; ``flush`` reports what has gathered since.
    """

    def __init__(self, type_: str, tell: Callable[[str, msgspec.Struct], None]) -> None:
        self.totals: dict[str, int] = {}
        self._type = type_
        self._tell = tell
        self._pending: dict[tuple[str, str], tuple[int, str]] = {}
        self._flushed_us: int | None = None

    def add(self, code: str, words: str, *, channel: str, now_us: int) -> None:
        """Count one; ``channel`` is "" where none could be read, ``words`` say what happened."""
        self.totals[code] = self.totals.get(code, 0) + 1
        key = (code, channel)
        if key not in self._pending and len(self._pending) >= MAX_KINDS:
            key = (code, "")
        count, example = self._pending.get(key, (0, ""))
        self._pending[key] = (count + 1, example or words[:_EXAMPLE_CHARS])
        self.flush(now_us)

    def flush(self, now_us: int) -> None:
        """Report what has gathered, unless that was done within the last second."""
        if not self._pending or (self._flushed_us is not None and now_us - self._flushed_us < PERIOD_US):
            return
        self._flushed_us = now_us
        pending, self._pending = self._pending, {}
        for (code, channel), (count, example) in pending.items():
            self._tell(self._type, Refused(code=code, channel=channel, count=count, example=example))
