"""The names of entries: what may be one, and the parts that a slash nests."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from runtime.abi.errors import KnowledgeEscape
from runtime.abi.knowledge import MAX_NAME_BYTES

MAX_PART_BYTES = 255
MAX_PARTS = 16
_SPACES = ("Zl", "Zp", "Zs")


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name, outermost first; ``KnowledgeEscape`` says why it is none."""
    parts, reason = _parsed(name) if len(name) <= MAX_NAME_BYTES else ((), f"is longer than {MAX_NAME_BYTES} bytes")
    if reason:
        raise KnowledgeEscape(f"{shown(name)} {reason}", name=shown(name))
    return parts


def part_fault(part: str) -> str:
    """Why this can't be one part of a name; "" when it can.

    >>> part_fault("..")
    'has a part that begins with a dot'
    """
    if not part:
        return "has an empty part"
    if part[0] == ".":
        return "has a part that begins with a dot"
    if part[0] == " " or part[-1] in " .":
        return "has a part that begins or ends with a space, or ends with a dot"
    if "\\" in part:
        return "has a backslash"
    if not (part.isascii() and part.isprintable()) and (fault := _letters_fault(part)):
        return fault
    return f"has a part longer than {MAX_PART_BYTES} bytes" if len(part.encode()) > MAX_PART_BYTES else ""


def _letters_fault(part: str) -> str:
    """Characters that can't be seen or that not every system keeps as they are."""
    for letter in part:
        category = unicodedata.category(letter)
        if category[0] == "C" or (category in _SPACES and letter != " "):
            return f"has the character U+{ord(letter):04X}, which can't be seen"
    return "" if unicodedata.is_normalized("NFC", part) else "isn't in Unicode's composed form (NFC)"


@lru_cache(maxsize=4096)
def _parsed(name: str) -> tuple[tuple[str, ...], str]:
    """The parts, or why there are none."""
    parts = tuple(name.split("/"))
    if len(parts) > MAX_PARTS:
        return (), f"has more than {MAX_PARTS} parts"
    for part in parts:
        if fault := part_fault(part):
            return (), fault
    if len(name.encode()) > MAX_NAME_BYTES:
        return (), f"is longer than {MAX_NAME_BYTES} bytes"
    return parts, ""


def shown(name: str) -> str:
    """A name for a message: whatever it holds, it drives no terminal and crosses every socket."""
    return ascii(name if len(name) <= 120 else f"{name[:119]}…") if not name.isprintable() else repr(name[:120])
