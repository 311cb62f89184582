"""What blocks print: one item a ``print``, kept by block whoever prints at the same time, bounded at any length."""

from __future__ import annotations

import builtins
import io
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from threading import RLock
from typing import Any

MAX_CHARACTERS = 50_000
"""Kept of the beginning, and of the end again: more than the kernel puts into an entry."""


class Output:
    """The items of one block."""

    def __init__(self) -> None:
        self._lock = RLock()  # a __del__ may print while another print of its thread is kept
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
            if (between := len(text) - 4 * MAX_CHARACTERS) > 0:
                self._write(text[: 2 * MAX_CHARACTERS])
                self._flush()
                self._lost += between
                text = text[-2 * MAX_CHARACTERS :]
            self._write(text)
            if len(self._partial) > MAX_CHARACTERS:
                self._flush()

    def _write(self, text: str) -> None:
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._keep(line)

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
        """Each item counts one more than its characters, so that empty ones are bounded too."""
        if self._closed:
            return
        size = len(text) + 1
        if not self._tail and self._head_size + size <= MAX_CHARACTERS:
            self._head.append(_clean(text))
            self._head_size += size
            return
        if not self._tail and (room := MAX_CHARACTERS - self._head_size - 1) > 0:
            self._head.append(_clean(text[:room]))
            self._head_size = MAX_CHARACTERS
            text = text[room:]
        if (more := len(text) - MAX_CHARACTERS + 1) > 0:
            self._lost += more
            text = text[more:]
        self._tail.append(_clean(text))
        self._tail_size += len(text) + 1
        while self._tail_size > MAX_CHARACTERS:
            gone = len(self._tail.popleft()) + 1
            self._tail_size -= gone
            self._lost += gone


def _clean(text: str) -> str:
    """Lone surrogates have no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


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


class Console:
    """The streams and the ``print`` of every block."""

    def __init__(self) -> None:
        self._print = builtins.print
        self._stdout, self._stderr = Stream(), Stream()
        self.print = self._make()

    def put_back(self) -> None:
        """What is printed from now on goes to its block, whatever a block before has made of it."""
        sys.stdout, sys.stderr = self._stdout, self._stderr
        builtins.print = self.print

    def _make(self) -> Callable[..., None]:
        original, streams = self._print, (self._stdout, self._stderr)

        def print_(
            *values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False
        ) -> None:
            target = sys.stdout if file is None else file
            output = current.get()
            if output is None or not any(target is stream for stream in streams):
                original(*values, sep=sep, end=end, file=target, flush=flush)
            else:
                output.add(_item(values, " " if sep is None else sep, "\n" if end is None else end))

        print_.__name__ = print_.__qualname__ = "print"
        print_.__doc__ = original.__doc__
        return print_


def _item(values: Sequence[Any], sep: str, end: str) -> str:
    """What a ``print`` says, without its last newline; no copy is made of a long text alone."""
    for name, text in (("sep", sep), ("end", end)):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be None or a string, not {type(text).__name__}")
    texts = [str.__str__(str(value)) for value in values]
    text = texts[0] if len(texts) == 1 else sep.join(texts)
    return text if end == "\n" else (text + end).removesuffix("\n")
