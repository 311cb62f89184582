"""Who waits for which entry to be on the disk, in the order of the entries."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import TypeAlias

from capsule.errors import AxonError

Told: TypeAlias = Callable[[AxonError | None], None]
"""Called once, on the loop: with None when the entry is on the disk, or with what keeps it from there."""


class Waiting:
    """Callbacks by ``seq``, then as they were asked for."""

    def __init__(self) -> None:
        self._calls: list[tuple[int, int, Told]] = []
        self._asked = 0

    def add(self, seq: int, told: Told) -> None:
        """Call ``told`` when that entry settles or fails."""
        self._asked += 1
        if not self._calls or self._calls[-1][0] <= seq:
            self._calls.append((seq, self._asked, told))
        else:
            insort(self._calls, (seq, self._asked, told))

    def settle(self, seq: int) -> None:
        """Entries up to there are on the disk."""
        cut = bisect_right(self._calls, seq, key=_seq_of)
        due, self._calls[:cut] = self._calls[:cut], []
        for _, _, told in due:
            told(None)

    def fail(self, error: AxonError) -> None:
        """Whoever still waits does so in vain."""
        calls, self._calls = self._calls, []
        for _, _, told in calls:
            told(error)


def _seq_of(call: tuple[int, int, Told]) -> int:
    return call[0]
