"""Lines for the person at the terminal, written by a thread: a stuck terminal never stops the kernel."""

from __future__ import annotations

import queue
import sys
import threading
from typing import TextIO

MAX_WAITING = 1000


class Console:
    """``say`` never blocks; what the terminal can't take in time is dropped and counted."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lines: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._write, name="console", daemon=True)
        self._thread.start()
        self.dropped = 0

    def say(self, line: str) -> None:
        """Queue one line."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def close(self, timeout_s: float = 1.0) -> None:
        """Write what waits, for at most that long."""
        try:
            self._lines.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                print(line, file=self._stream, flush=True)
            except (OSError, ValueError):
                return  # the terminal is gone; the kernel lives on
