"""Lines for the person at the terminal, written by a thread: a stuck terminal never stops the kernel."""

from __future__ import annotations

import queue
import re
import sys
import threading
from collections import deque
from typing import TextIO

from runtime.abi.clock import mono_us

MAX_WAITING = 1000
QUIET_US = 10_000_000
"""How long a line that was just said isn't said again; numbers in it don't make it another line."""
MAX_KNOWN = 256
NOTICES = 5


class Console:
    """``say`` never blocks; what the terminal can't take in time is dropped and counted.

    With a live view on the terminal (``has_view``) lines are in ``notices``, which the view shows, and are written
    when it has gone.
    """

    def __init__(self, stream: TextIO | None = None, *, has_view: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._has_view = has_view
        self._known: dict[str, tuple[int, int]] = {}
        self._lines: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._write, name="console", daemon=True)
        self._thread.start()
        self.notices: deque[str] = deque(maxlen=NOTICES)
        self.dropped = 0

    def say(self, line: str, *, always: bool = False) -> None:
        """Say one line, unless it was said a moment ago: then it is counted, and the count is said with the next.

        ``always`` is for a state, of which the newest must be the last that a person reads.
        """
        kind, now_us = re.sub(r"\d+", "#", line), mono_us()
        said_us, repeats = self._known.get(kind, (-QUIET_US, 0))
        if now_us - said_us < QUIET_US and not always:
            self._known[kind] = (said_us, repeats + 1)
            return
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[kind] = (now_us, 0)
        text = f"{line} (and {repeats} more like it before)" if repeats else line
        self.notices.append(text)
        try:
            self._lines.put_nowait(text)
        except queue.Full:
            self.dropped += 1

    def settled(self, words: str) -> None:
        """What the notices tell of that begin or end with these words is over: a view doesn't show them any more."""
        for notice in [one for one in self.notices if one.startswith(words) or one.endswith(words)]:
            self.notices.remove(notice)

    def close(self, timeout_s: float = 1.0) -> None:
        """Write what waits, for at most that long."""
        self._has_view = False
        try:
            self._lines.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _write(self) -> None:
        waiting: list[str] = []  # of a run with a view: at most what a person may want to read at its end
        while (line := self._lines.get()) is not None:
            waiting = [*waiting[-MAX_WAITING:], line]
            if not self._has_view and not self._print(waiting):
                return
        self._print(waiting)

    def _print(self, lines: list[str]) -> bool:
        """Write and forget them; False when the terminal is gone, while the kernel lives on."""
        try:
            for line in lines:
                print(line, file=self._stream, flush=True)
        except (OSError, ValueError):
            return False
        lines.clear()
        return True
