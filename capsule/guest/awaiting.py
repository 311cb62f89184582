"""Blocks that await: their coroutine run to its end, on a loop of its own or of the incarnation.

Imported by the first block that awaits: asyncio takes as long to import as all the rest of a guest.
"""

from __future__ import annotations

import asyncio
from typing import Any

LEAVE_S = 0.1
"""How long the tasks that a block of a list leaves behind may take to end."""


class Loop:
    """An event loop; a ``lasting`` one goes on from block to block, with the tasks that they leave behind."""

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None

    def complete(self, coroutine: Any) -> None:
        """Run it to its end; if this ends otherwise, it is cancelled and has ended before."""
        if self._loop.is_closed():  # by a block
            self._loop = asyncio.new_event_loop()
        if self._lasting:
            asyncio.set_event_loop(self._loop)
        task = self._task = self._loop.create_task(coroutine)
        try:
            self._loop.run_until_complete(task)
        except BaseException:
            self._finish(task)
            raise
        finally:
            self._task = None
            if not self._lasting:
                self._leave()

    def cancel(self) -> bool:
        """Cancel what is awaited, from another thread or a signal's handler; False when nothing is."""
        task = self._task
        if task is None or task.done():
            return False
        self._loop.call_soon_threadsafe(task.cancel)
        return True

    @property
    def is_in_task(self) -> bool:
        """Whether it is the block's own coroutine that runs now, and not another task."""
        return asyncio.current_task(self._loop) is self._task

    def close(self) -> None:
        """The block has ended."""
        self._loop.close()

    def _finish(self, task: asyncio.Task[Any]) -> None:
        """The loop was stopped, by the block or by an exit of another of its tasks."""
        if not task.done():
            task.cancel()
            self._loop.run_until_complete(asyncio.wait([task]))
        if not task.cancelled():
            task.exception()  # looked at: nothing is said about it later

    def _leave(self) -> None:
        """What the block has left running ends with it."""
        if left := asyncio.all_tasks(self._loop):
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(left, timeout=LEAVE_S))
