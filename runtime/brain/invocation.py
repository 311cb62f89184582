"""When an invocation cognet wakes: for masked stimuli, one wake at a time, never for its own echo."""

from __future__ import annotations

from collections.abc import Callable

from runtime.abi.link import Row
from runtime.brain.history import Session
from runtime.brain.scheduler import Scheduler
from runtime.brain.stimuli import Mask
from runtime.brain.window import Window

RESULT = "cognet:action:result"


class Invocation:
    """Watches what arrives and what ends.

    ``settle`` records up to where the cognet has answered: to just before the first masked stimulus that
    no tick has taken, else to the log's end, which covers the wake's own outputs and results.
    """

    def __init__(self, *, scheduler: Scheduler, mask: Mask, window: Window, settle: Callable[[int], None]) -> None:
        self._scheduler = scheduler
        self._mask = mask
        self._window = window
        self._settle = settle
        self._first_waiting = 0  # the first masked stimulus that no tick has taken; 0 when there is none
        self._is_open = False
        scheduler.ended = self._ended

    def arrived(self, row: Row) -> None:
        """A row was admitted and is in the window."""
        if self._mask.selects(row.type, row.body):
            self._first_waiting = self._first_waiting or row.seq or self._window.last_seq + 1
            self._wake_if_idle()

    def took(self) -> None:
        """A tick has taken all stimuli."""
        self._first_waiting = 0

    def open(self, *, unanswered: bool) -> None:
        """Begin to wake; at once if something ``unanswered`` lies in the log."""
        self._is_open = True
        if unanswered:
            self._first_waiting = self._first_waiting or self._window.last_seq + 1
        self._wake_if_idle()

    def _wake_if_idle(self) -> None:
        ready = self._is_open and not self._scheduler.stopping
        if ready and self._first_waiting and not self._scheduler.open_wakes:
            self._scheduler.admit()

    def _ended(self) -> None:
        if not self._scheduler.stopping:  # one that the shutdown cut short is answered at the next start
            self._settle(self._first_waiting - 1 if self._first_waiting else self._window.last_seq)
        self._wake_if_idle()


def unanswered(session: Session, mask: Mask, *, settled_seq: int, upto: int) -> bool:
    """Whether a masked stimulus or a closed action lies beyond what was settled; reads pages, so in a thread.

    A result that no wake asked for (a person's, a hook's) is nobody's question.
    """
    entries = session.get(after=settled_seq, upto=upto)
    return any(
        (entry.type == RESULT and entry.context.wake_id is not None) or mask.selects_entry(entry) for entry in entries
    )
