"""The log in memory: everything not yet durable, and the newest rows before that."""

from __future__ import annotations

from runtime.abi.link import Row


class Projection:
    """Rows in ``seq`` order without a hole. The loop's thread changes it; any thread may read it."""

    def __init__(self, rows: list[Row], *, after: int, window: int) -> None:
        self._view = (after + 1, list(rows))  # the first seq held, and the rows; replaced as one
        self._window = max(window, 1)

    @property
    def first_seq(self) -> int:
        """The oldest row held; one above the last when none is."""
        return self._view[0]

    def append(self, row: Row) -> None:
        """Take the next row."""
        self._view[1].append(row)

    def trim(self, durable_seq: int) -> None:
        """Let go of durable rows beyond the window, now and then."""
        first, rows = self._view
        spare = min(len(rows) - self._window, durable_seq + 1 - first)
        if spare > self._window:
            self._view = (first + spare, rows[spare:])

    def after(self, seq: int, limit: int | None = None) -> list[Row]:
        """The rows held above ``seq``, oldest first, at most ``limit``."""
        first, rows = self._view
        start = max(seq + 1 - first, 0)
        return rows[start:] if limit is None else rows[start : start + limit]
