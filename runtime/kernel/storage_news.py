"""What the log tells of its disk, for the person at the terminal, for telemetry and for observers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runtime.abi.telemetry import Refused, Storage
from runtime.kernel.narrator import Narrator
from runtime.log.log import Log

FULL = "the disk is full: media go first, then telemetry, then new stimuli; outputs and stops have a reserve"
ROOM = "the disk has room again"


class StorageNews:
    """Listens to one log."""

    def __init__(self, log: Log, *, narrator: Narrator, say: Callable[[str], None]) -> None:
        self._log = log
        self._narrator = narrator
        self._say = say

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on; what page threads tell comes to the loop first."""
        self._log.on_state = self._state
        self._log.on_space = self._space
        self._log.on_page_refused = lambda reason: _post(loop, self._pages, reason)

    def _state(self, state: str, reason: str) -> None:
        self._tell(state, reason)

    def _space(self, low: bool) -> None:  # noqa: FBT001 (the log's own call)
        self._tell("full" if low else "ok", FULL if low else ROOM)

    def _tell(self, state: str, reason: str) -> None:
        self._narrator.tell(
            "kernel:log:storage", Storage(state=state, reason=reason, durable_seq=self._log.durable_seq)
        )
        self._say(f"[kernel] storage is {state}{': ' if reason else ''}{reason}")

    def _pages(self, reason: str) -> None:
        self._narrator.tell(
            "kernel:link:refused", Refused(code="FRAME_INVALID", example=f"page socket: {reason}"[:500])
        )


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[[str], None], reason: str) -> None:
    """A loop that has ended has nobody left to tell."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback, reason)
