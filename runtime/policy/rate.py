"""How often something may happen: so many a period on average, and so many at once."""

from __future__ import annotations


class Rate:
    """Takes the monotonic clock as an argument, and keeps one number: when all of the burst is free again.

    Times are kept in microseconds by ``count``, so that nothing is ever rounded.
    """

    def __init__(self, count: int, *, per_s: int, burst: int | None = None) -> None:
        self._count = count
        self._interval = per_s * 1_000_000
        self._slack = self._interval * ((burst or count) - 1)
        self._free: int | None = None

    def take(self, now_us: int) -> bool:
        """Count one now, if it isn't too many."""
        now = now_us * self._count
        free = now if self._free is None else max(self._free, now)
        if free - now > self._slack:
            return False
        self._free = free + self._interval
        return True
