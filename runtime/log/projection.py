"""The log in memory: everything not yet durable, and the newest rows before that."""

from __future__ import annotations

from runtime.abi.link import Row

MAX_BYTES = 8 * 1024 * 1024


class Projection:
    """Rows in ``seq`` order without a hole. The loop's thread changes it; any thread may read it."""

    def __init__(self, rows: list[Row], *, after: int, window: int) -> None:
        self._view = (after + 1, list(rows))  # the first seq held, and the rows; replaced as one
        self._window = max(window, 1)
        self._bytes = sum(len(row.body) for row in rows)

    @property
    def first_seq(self) -> int:
        """The oldest row held; one above the last when none is."""
        return self._view[0]

    def append(self, row: Row) -> None:
        """Take the next row."""
        self._view[1].append(row)
        self._bytes += len(row.body)

    def trim(self, durable_seq: int) -> None:
        """Let go of durable rows beyond the window, or beyond ``MAX_BYTES``, now and then."""
        first, rows = self._view
        durable = durable_seq + 1 - first
        spare = min(len(rows) - self._window, durable)
        if self._bytes > MAX_BYTES:
            spare = min(durable, max(spare, len(rows) // 2))
        elif spare <= self._window:
            return
        if spare > 0:
            self._bytes -= sum(len(row.body) for row in rows[:spare])
            self._view = (first + spare, rows[spare:])

    def after(self, seq: int, limit: int | None = None) -> list[Row]:
        """The rows held above ``seq``, oldest first, at most ``limit``."""
        first, rows = self._view
        start = max(seq + 1 - first, 0)
        return rows[start:] if limit is None else rows[start : start + limit]
