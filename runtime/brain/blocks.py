"""The block grammar of a model's answer, read as it comes: words, blocks of Python, and the marker that all is said.

A line that is ```` ```python ```` begins a block, a line that is ```` ``` ```` ends it, a line that is ``<done/>`` says
that the answer needs no further turn; spaces may follow each. Everything else is words, other fences too. A block that
is open when the answer ends is a violation.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import TypeAlias

import msgspec

from runtime.brain.verbs import kernel

OPEN = "```python"
CLOSE = "```"
DONE = "<done/>"
UNCLOSED = "UNCLOSED_BLOCK"
EXCERPT = 200


class Words(msgspec.Struct, frozen=True):
    """What is said, in pieces: each as soon as it can't be the beginning of a mark any more."""

    text: str


class Block(msgspec.Struct, frozen=True):
    """A whole block; ``code`` without its fences."""

    code: str


class Done(msgspec.Struct, frozen=True):
    """The marker came: the model wants no further turn. What follows it still counts."""


class Unclosed(msgspec.Struct, frozen=True):
    """The answer ended inside a block, which therefore isn't one."""

    code: str

    @property
    def message(self) -> str:
        """What the model is told."""
        return f"a block was begun with {OPEN} and never closed with {CLOSE}: nothing of it ran"

    @property
    def excerpt(self) -> str:
        """Its beginning."""
        return f"{OPEN}\n{self.code}"[:EXCERPT]


Part: TypeAlias = Words | Block | Done | Unclosed


class BlockParser:
    """``feed`` it pieces of any size, then ``finish``; any cutting of an answer gives the same parts."""

    def __init__(self) -> None:
        self._line = ""  # the present line as far as it is held back
        self._told = False  # the beginning of the present line was told as words
        self._code: list[str] | None = None

    def feed(self, piece: str) -> list[Part]:
        """The parts that have become certain."""
        parts: list[Part] = []
        for line in _lines(piece):
            self._take(line, parts)
        return parts

    def finish(self) -> list[Part]:
        """The answer has ended."""
        parts: list[Part] = []
        line, self._line = self._line, ""
        if line:
            self._end_line(line, parts)
        if self._code is not None:
            parts.append(Unclosed("".join(self._code)))
            self._code = None
        return parts

    def _take(self, text: str, parts: list[Part]) -> None:
        """A part of a line, with its end if that has come."""
        if self._code is None and self._told:
            _say(text, parts)
            self._told = not text.endswith("\n")
            return
        self._line += text
        if self._line.endswith("\n"):
            line, self._line = self._line, ""
            self._end_line(line, parts)
        elif self._code is None and not _may_become_mark(self._line):
            _say(self._line, parts)
            self._line, self._told = "", True

    def _end_line(self, line: str, parts: list[Part]) -> None:
        """A whole line that no part of was told."""
        mark = line.rstrip()
        if self._code is not None:
            if mark == CLOSE:
                parts.append(Block("".join(self._code)))
                self._code = None
            else:
                self._code.append(line)
        elif mark == OPEN:
            self._code = []
        elif mark == DONE:
            parts.append(Done())
        else:
            _say(line, parts)


def _lines(text: str) -> list[str]:
    """Cut after each line feed, and only there: other ends of lines may stand inside a line of Python."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _may_become_mark(line: str) -> bool:
    """Whether a line that hasn't ended may still be a fence or the marker."""
    bare = line.rstrip()
    return any(mark == bare or mark.startswith(line) for mark in (OPEN, DONE))


def _say(text: str, parts: list[Part]) -> None:
    if parts and isinstance(parts[-1], Words):
        parts[-1] = Words(parts[-1].text + text)
    else:
        parts.append(Words(text))


async def blocks(pieces: AsyncIterable[str]) -> AsyncIterator[Part]:
    """The parts of an answer as its pieces come: ``async for part in blocks(engine.stream(messages))``.

    A block that is never closed is a fault, which the kernel writes and the next tick sees; it comes as ``Unclosed``.
    """
    parser = BlockParser()
    async for piece in pieces:
        for part in parser.feed(piece):
            yield part
    for part in parser.finish():
        if isinstance(part, Unclosed):
            await kernel.fault(code=UNCLOSED, message=part.message, excerpt=part.excerpt)
        yield part
