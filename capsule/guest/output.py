"""What blocks print: one item a ``print``, kept by block whoever prints at the same time, bounded at any length."""

from __future__ import annotations

import builtins
import io
import sys
from collections import deque
from contextvars import ContextVar
from threading import Lock
from typing import Any

MAX_CHARACTERS = 50_000
"""Kept of the beginning, and of the end again: more than the kernel puts into an entry."""
MAX_ITEMS = 10_000


class Output:
    """The items of one block."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._head_size = self._tail_size = 0
        self._lost = 0
        self._partial = ""
        self._closed = False

    def add(self, text: str) -> None:
        """One item: what one ``print`` said."""
        with self._lock:
            self._flush()
            self._keep(text)

    def write(self, text: str) -> None:
        """Pieces written to the stream itself: an item a line."""
        with self._lock:
            *lines, self._partial = (self._partial + text).split("\n")
            for line in lines:
                self._keep(line)
            if len(self._partial) > MAX_CHARACTERS:
                self._flush()

    def close(self) -> tuple[list[str], str | None]:
        """All items, and what was left out in words; what comes after this is nobody's."""
        with self._lock:
            self._flush()
            self._closed = True
            items = [*self._head, *self._tail]
        return items, f"stdout: {self._lost:,} characters left out" if self._lost else None

    def _flush(self) -> None:
        partial, self._partial = self._partial, ""
        if partial:
            self._keep(partial)

    def _keep(self, text: str) -> None:
        if self._closed:
            return
        text = text if text.isascii() else text.encode("utf-8", "replace").decode()
        size = len(text) + 1  # with its line end: a million empty lines are bounded and told as well
        if not self._tail and self._head_size + size <= MAX_CHARACTERS and len(self._head) < MAX_ITEMS:
            self._head.append(text)
            self._head_size += size
            return
        if size > MAX_CHARACTERS:
            room = max(MAX_CHARACTERS - self._head_size, 0) if not self._tail else 0
            if room:
                self._head.append(text[:room])
                self._head_size = MAX_CHARACTERS
            end = text[max(room, size - MAX_CHARACTERS) :]
            self._lost += len(text) - room - len(end)
            text, size = end, len(end) + 1
        self._tail.append(text)
        self._tail_size += size
        while self._tail_size > MAX_CHARACTERS or len(self._tail) > MAX_ITEMS:
            gone = len(self._tail.popleft()) + 1
            self._tail_size -= gone
            self._lost += gone


current: ContextVar[Output | None] = ContextVar("axon_output", default=None)
"""The output of the block whose code is running here."""


class Stream(io.TextIOBase):
    """``sys.stdout`` and ``sys.stderr``: both belong to the block that writes."""

    encoding = "utf-8"
    errors = "replace"

    def write(self, text: str) -> int:
        """Pieces of lines."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        output = current.get()
        if output is not None:
            output.write(str.__str__(text))
        return len(text)

    def writable(self) -> bool:
        """Always."""
        return True

    def flush(self) -> None:
        """Nothing waits here."""


_print = builtins.print


def install() -> None:
    """From now on what is printed goes to its block."""
    streams = Stream(), Stream()
    sys.stdout, sys.stderr = streams

    def print_(
        *values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False
    ) -> None:
        target = sys.stdout if file is None else file
        output = current.get()
        if target not in streams or output is None:
            _print(*values, sep=sep, end=end, file=target, flush=flush)
            return
        text = io.StringIO()
        _print(*values, sep=sep, end=end, file=text)
        output.add(text.getvalue().removesuffix("\n"))

    print_.__name__ = print_.__qualname__ = "print"
    print_.__doc__ = _print.__doc__
    builtins.print = print_
