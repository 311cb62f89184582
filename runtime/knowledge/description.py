"""What an entry says of itself: ``description`` in its front matter, read by a rule far smaller than YAML's.

Front matter is a first line ``---``, lines ``key: value``, and a closing line ``---`` or ``...``. No library: what a
stranger wrote into a file is read at every look at the catalogue, and YAML's aliases and tags have no place in that.
"""

from __future__ import annotations

import re

HEAD_BYTES = 4096
"""Front matter must end within so many bytes."""
MAX_DESCRIPTION = 500
_FENCES = ("---", "...")
_KEY = re.compile(r"description[ \t]*:(?:[ \t]+(.*))?$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_ESCAPE = re.compile(r"\\(.)")
_NO_TEXT = ("", "~", "null", "Null", "NULL")
_NOT_SCALAR = tuple("[]{}&*!|>%@`,?")


def description_of(head: bytes) -> str:
    """The description that the first ``HEAD_BYTES`` of a file declare, on one line; "" when they declare none.

    >>> description_of(b"---\\ndescription: How to dock\\n---\\n# Docking")
    'How to dock'
    """
    if not head.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
        return ""
    lines = head.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() in _FENCES), 0)
    if lines[0].rstrip() != "---" or not end or (end == len(lines) - 1 and len(head) == HEAD_BYTES):
        return ""
    declared = _declared(lines[1:end])
    return "" if "\N{REPLACEMENT CHARACTER}" in declared else _tidy(declared)


def _declared(lines: list[str]) -> str:
    """The value of the first top-level ``description``, with the lines below it that are indented."""
    for number, line in enumerate(lines):
        if found := _KEY.match(line):
            below = []
            for more in lines[number + 1 :]:
                if more.strip() and more[0] not in " \t":
                    break
                below.append(more.strip())
            return _scalar((found[1] or "").strip(), below)
    return ""


def _scalar(first: str, below: list[str]) -> str:
    """A quoted text, a block (``|`` or ``>``), or a plain one; anything else is no text."""
    if re.fullmatch(r"[|>][-+0-9]{0,2}(?:[ \t]+#.*)?", first):
        return " ".join(below)
    whole = " ".join([first, *below]).strip()
    if whole[:1] == '"':
        found = re.match(r'"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?$', whole)
        return _ESCAPE.sub(_escaped, found[1]) if found else ""
    if whole[:1] == "'":
        found = re.match(r"'((?:[^']|'')*)'[ \t]*(?:#.*)?$", whole)
        return found[1].replace("''", "'") if found else ""
    plain = " ".join(_COMMENT.sub("", line).strip() for line in [first, *below]).strip()
    return "" if plain in _NO_TEXT or plain.startswith(_NOT_SCALAR) else plain


def _escaped(found: re.Match[str]) -> str:
    return {"n": " ", "t": " ", "r": " "}.get(found[1], found[1])


def _tidy(text: str) -> str:
    """One line of printable text of bounded length."""
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    line = " ".join(words)
    return line if len(line) <= MAX_DESCRIPTION else f"{line[: MAX_DESCRIPTION - 1]}…"
