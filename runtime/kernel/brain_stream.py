"""Entries on their way to one brain: what was admitted in a turn of the loop goes out together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from capsule.frames import frame
from runtime.abi.link import Entries, Row

ROWS_A_FRAME = 32  # of at most 256 KB each: a frame has its limit
_encoder = msgspec.msgpack.Encoder()


class BrainStream:
    """Rows in their order; ``write`` takes them as frames."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._rows: list[Row] = []
        self._flushing: asyncio.Handle | None = None

    def add(self, rows: list[Row], *, may_wait: bool) -> None:
        """Rows were admitted: they go out at the end of the turn; a lone one may wait for what is written next."""
        waits = may_wait and not self._rows
        self._rows += rows
        if not waits and self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_soon(self.flush)

    def take_lone(self) -> list[Row]:
        """What a message that is written now can carry: a lone row; more of them are written before it."""
        if len(self._rows) > 1:
            self.flush()
        rows, self._rows = self._rows, []
        return rows

    def flush(self) -> None:
        """Write all that waits."""
        self._flushing = None
        rows, self._rows = self._rows, []
        parts = [rows[start : start + ROWS_A_FRAME] for start in range(0, len(rows), ROWS_A_FRAME)]
        if parts:
            self._write(b"".join([frame(_encoder.encode(Entries(part))) for part in parts]))
