"""Where a key stands in a TOML file: ``tomllib`` gives values without lines, and errors need them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

Key = tuple[str | int, ...]
"""A key's path; numbers count the tables of an array, from 0."""

_NAME = r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'"""
_HEADER = re.compile(rf"\s*(\[\[?)\s*((?:{_NAME})(?:\s*\.\s*(?:{_NAME}))*)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(rf"\s*((?:{_NAME})(?:\s*\.\s*(?:{_NAME}))*)\s*=")
_PART = re.compile(_NAME)
_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:[^"\\]|\\.)*"|'[^']*'|\#.*|[\[\]{}]""")
_CLOSING = {
    '"' * 3: re.compile(r'(?:[^"\\]|\\.|"(?!""))*"{3,5}'),  # a string may end in one or two quotes of its own
    "'" * 3: re.compile(r"(?:[^']|'(?!''))*'{3,5}"),
}


class Lines:
    """Finds the line of a key; for a key inside an inline value it is the line where that value begins."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Key, int] = {}
        for key, line in _scan(text):
            self._lines.setdefault(key, line)

    def of(self, key: Key) -> int:
        """The line of ``key`` or of the nearest thing around it; 1 when nothing of it is written."""
        while key:
            if key in self._lines:
                return self._lines[key]
            for inner, line in self._lines.items():  # [a.b] makes the table a without a header of its own
                if inner[: len(key)] == key:
                    return line
            key = key[:-1]
        return 1


def _scan(text: str) -> Iterator[tuple[Key, int]]:
    """Every header and key with its line; what goes on over several lines is passed over."""
    table: Key = ()
    counts: dict[Key, int] = {}
    value = _Value()
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if value.open:
            value.read(line)
        elif header := _HEADER.fullmatch(line):
            table = _table(header[2], array=header[1] == "[[", counts=counts)
            yield table, number
        elif key := _KEY.match(line):
            yield table + _parts(key[1]), number
            value.read(line[key.end() :])


class _Value:
    """How far a value has been read: inside which multi-line string, how deep in brackets."""

    def __init__(self) -> None:
        self._quotes = ""
        self._depth = 0

    @property
    def open(self) -> bool:
        """Whether the value goes on in the next line."""
        return bool(self._quotes) or self._depth > 0

    def read(self, line: str) -> None:
        """One line of it."""
        at = 0
        while at < len(line):
            if self._quotes:
                end = _CLOSING[self._quotes].match(line, at)
                if end is None:
                    return
                at, self._quotes = end.end(), ""
            elif token := _TOKEN.search(line, at):
                at = token.end()
                self._take(token[0])
            else:
                return

    def _take(self, token: str) -> None:
        if token in _CLOSING:
            self._quotes = token
        elif token in "[{":
            self._depth += 1
        elif token in "]}":
            self._depth -= 1


def _table(name: str, *, array: bool, counts: dict[Key, int]) -> Key:
    """The path that a header opens; ``counts`` holds the number of the last table of each array so far."""
    path: Key = ()
    parts = _parts(name)
    for index, part in enumerate(parts, 1):
        path += (part,)
        if array and index == len(parts):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path += (counts[path],)
    return path


def _parts(dotted: str) -> tuple[str, ...]:
    """The parts of a dotted key without their quotes."""
    return tuple(_unquoted(part) for part in _PART.findall(dotted))


def _unquoted(part: str) -> str:
    if part[0] in "\"'":
        return str(tomllib.loads(f"k = {part}")["k"])
    return part
