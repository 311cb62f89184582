"""Entries on their way to one brain: what was admitted in a turn of the loop goes out together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from capsule.frames import frame
from runtime.abi.link import Entries, Row

ROWS_A_FRAME = 32  # of at most 256 KB each: a frame has its limit
_encoder = msgspec.msgpack.Encoder()

Until: TypeAlias = Literal["turn", "soon", "reply"]
"""How long a lone row waits to go with a reply: to the end of this turn of the loop, of the next, or for ever."""


class BrainStream:
    """Rows in their order; ``write`` takes them as frames."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._rows: list[Row] = []
        self._flushing: asyncio.Handle | None = None

    def add(self, rows: list[Row], *, until: Until) -> None:
        """Rows were admitted: they go out at the end of the turn; a lone one may wait for the reply to its call."""
        if self._rows:
            until = "turn"
        self._rows += rows
        if until == "reply" or self._flushing is not None:
            return
        call_soon = asyncio.get_running_loop().call_soon
        self._flushing = call_soon(self.flush) if until == "turn" else call_soon(self._flush_next)

    def take_lone(self) -> list[Row]:
        """What a message that is written now can carry: a lone row; more of them are written before it."""
        if len(self._rows) > 1:
            self.flush()
        rows, self._rows = self._rows, []
        return rows

    def _flush_next(self) -> None:
        self._flushing = asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Write all that waits."""
        self._flushing = None
        rows, self._rows = self._rows, []
        parts = [rows[start : start + ROWS_A_FRAME] for start in range(0, len(rows), ROWS_A_FRAME)]
        if parts:
            self._write(b"".join([frame(_encoder.encode(Entries(part))) for part in parts]))
