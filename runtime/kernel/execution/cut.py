"""Cuts what is too long, keeping both ends, and says where."""

from __future__ import annotations

from collections.abc import Sequence

MARK = 40
"""Room for the words that stand where something was left out."""


def cut_text(text: str, limit: int) -> tuple[str, int]:
    """At most ``limit`` characters of it (and the mark, if that is less), both ends, and how many were left out."""
    if len(text) <= limit:
        return text, 0
    kept = max(limit - MARK, 0)
    head = kept // 2
    tail = kept - head
    lost = len(text) - kept
    return f"{text[:head]}{mark(lost)}{text[len(text) - tail :]}", lost


def cut_lines(lines: Sequence[str], limit: int, *, lost_before: int = 0) -> tuple[list[str], int]:
    """At most ``limit`` characters of all lines, from both ends, and how many were left out.

    Each line counts one more, for its end; the mark stands inside a line, between what is left of two. It and the
    count say ``lost_before`` too, which somebody else has taken out of the middle.
    """
    whole = length(lines)
    if whole <= limit:
        return list(lines), lost_before
    kept = max(limit - MARK - 1, 0)
    head = kept // 2
    first, front = _fitting(lines, head)
    last, back = _fitting(lines[::-1], kept - head)
    end = len(lines) - last
    starts, ends = lines[first], lines[end - 1]
    begin, finish = starts[: head - front], ends[max(len(ends) - (kept - head - back), 0) :]
    lost = lost_before + whole - front - back - len(begin) - len(finish) - 1
    return [*lines[:first], begin + mark(lost) + finish, *lines[end:]], lost


def length(lines: Sequence[str]) -> int:
    """What lines count."""
    return sum(map(len, lines)) + len(lines)


def mark(lost: int) -> str:
    """What stands where something was left out."""
    return f"[... {lost:,} characters cut ...]"


def shares(wanted: Sequence[int], limit: int) -> list[int]:
    """Divide ``limit``: who wants less than an equal share leaves the rest to the others."""
    granted = [0] * len(wanted)
    left, waiting = limit, sorted(range(len(wanted)), key=lambda index: wanted[index])
    for place, index in enumerate(waiting):
        granted[index] = min(wanted[index], left // (len(waiting) - place))
        left -= granted[index]
    return granted


def _fitting(lines: Sequence[str], limit: int) -> tuple[int, int]:
    """How many lines from the beginning fit whole, and what they count."""
    used = 0
    for count, line in enumerate(lines):
        if used + len(line) + 1 > limit:
            return count, used
        used += len(line) + 1
    return len(lines), used
