"""Blocks that await: their coroutine run to its end, on a loop of its own or of the incarnation.

Imported by the first block that awaits: asyncio takes as long to import as all the rest of a guest.
"""

from __future__ import annotations

import asyncio
from typing import Any

from capsule.guest.errors import Interrupted


class Loop:
    """An event loop that is made at its first use."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def complete(self, coroutine: Any) -> None:
        """Run it to its end; stopped in the middle, it is cancelled and ends before this returns."""
        task = self._loop.create_task(coroutine)
        try:
            self._loop.run_until_complete(task)
        except Interrupted:
            if not task.done():
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task]))
            if not task.cancelled():
                task.exception()  # looked at: nothing is said about it later
            raise

    def stir(self) -> None:
        """Have it run some Python, from another thread: one that waits for something doesn't notice an exception."""
        self._loop.call_soon_threadsafe(_nothing)

    def close(self) -> None:
        """The block has ended."""
        self._loop.close()


def _nothing() -> None:
    """Stirs a loop."""
