"""Threads in a capsule: one of a block of a list, which can be stopped alone, and those that blocks start."""

from __future__ import annotations

import contextvars
import ctypes
import sys
import threading
import time
from typing import Any

from capsule.guest import code
from capsule.guest.errors import Interrupted
from capsule.guest.running import Block

SLICE_S = 0.02
"""How long a thread sleeps at once: an asynchronous exception waits for the end of a sleep."""


class Thread:
    """The thread of a block of a list; made on it."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._ident = threading.get_ident()
        self._loop: Any = None
        self._was_cancelled = False

    def complete(self, coroutine: Any, loop: Any) -> None:
        """Run a coroutine of the block on a loop that is its own."""
        self._loop = loop
        loop.complete(coroutine)

    def stop(self) -> None:
        """From another thread: cancel what is awaited; told again, or where nothing is, throw an exception into it."""
        self._block.was_hit = True
        if self._loop is not None and self._loop.cancel() and not self._was_cancelled:
            self._was_cancelled = True
            return
        if not code.is_importing(sys._current_frames().get(self._ident)):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._ident), ctypes.py_object(Interrupted))

    def close(self) -> None:
        """The block has ended, and nobody stops it any more."""
        if self._loop is not None:
            self._loop.close()


def checkpoint() -> None:
    """What was thrown into this thread is met here: a call is where Python looks."""


def inherit_context() -> None:
    """A thread belongs to the block that started it: its prints and its calls."""
    for name in ("_start_new_thread", "_start_joinable_thread"):
        original = getattr(threading, name, None)
        if original is None:
            continue

        def start(function: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            context = contextvars.copy_context()
            return _original(lambda *inner, **named: context.run(function, *inner, **named), *args, **kwargs)

        setattr(threading, name, start)


def sleep_in_slices() -> None:
    """From now on ``time.sleep`` ends soon after an exception was thrown into its thread."""
    sleep, monotonic, main = time.sleep, time.monotonic, threading.main_thread().ident

    def sliced(seconds: Any) -> None:
        if threading.get_ident() == main or not isinstance(seconds, int | float) or not seconds > SLICE_S:
            sleep(seconds)
            return
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            sleep(min(left, SLICE_S))

    sliced.__name__ = sliced.__qualname__ = "sleep"
    sliced.__doc__ = sleep.__doc__
    time.sleep = sliced
