"""What had been promised at a moment, what a recovery found, and whether the one keeps the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

MOST = 60
"""So many characters of a value are shown."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """Entries up to ``acknowledged`` were promised, none beyond ``begun`` was admitted.

    ``values`` are the other durable things by name, each with what it may be now: what was acknowledged last and, while
    a change is under way, what it is to become.
    """

    acknowledged: int = 0
    begun: int = 0
    values: Mapping[str, tuple[Any, ...]] = {}

    @property
    def count(self) -> int:
        """How many things were promised."""
        return self.acknowledged + len(self.values)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a boot made of a state: so many ``entries`` of those that were written, as they were written.

    ``corrupt`` says what is wrong whatever had been promised; ``lacks`` what the entries found name and isn't there.
    """

    entries: int = 0
    values: Mapping[str, Any] = {}
    corrupt: str | None = None
    lacks: str | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, if anything."""

    lost: str | None = None
    corrupt: str | None = None


def judge(found: Found, promise: Promise) -> Verdict:
    """Compare the two."""
    if found.corrupt:
        return Verdict(corrupt=found.corrupt)
    if found.entries > promise.begun:
        return Verdict(corrupt=f"{found.entries} entries, of which only {promise.begun} were ever admitted")
    if found.entries < promise.acknowledged:
        return Verdict(lost=f"{promise.acknowledged} entries were acknowledged, {found.entries} are there")
    if found.lacks:
        return Verdict(lost=found.lacks)
    for name, allowed in promise.values.items():
        if found.values.get(name) not in allowed:
            there, wanted = str(found.values.get(name))[:MOST], ", ".join(str(each)[:MOST] for each in allowed)
            return Verdict(lost=f"{name} is {there}, not one of {wanted}")
    return Verdict()
