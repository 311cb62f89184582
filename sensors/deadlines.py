"""When to capture: absolute deadlines, so that a rhythm doesn't drift; whole periods missed are skipped and counted."""

from __future__ import annotations


class Deadlines:
    """The first capture is due one period after ``start``, as if the sensor had to expose first; monotonic seconds."""

    def __init__(self, *, start: float, period_s: float) -> None:
        self._start = start
        self._period_s = period_s
        self._number = 0

    def next(self, now: float) -> tuple[float, int]:
        """The next deadline, perhaps just past, and how many before it were missed whole."""
        self._number += 1
        due = self._start + self._number * self._period_s
        missed = max(int((now - due) / self._period_s), 0)
        self._number += missed
        return self._start + self._number * self._period_s, missed
