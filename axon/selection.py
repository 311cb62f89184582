"""Which entries ``axon log show`` shows: by type, by channel, by ``seq``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from axon.entry_text import channel_of
from runtime.abi.entries import ENTRY_CLASSES, Entry
from runtime.abi.errors import EntryTypeUnknown
from runtime.abi.faults import is_fault
from runtime.abi.telemetry import TELEMETRY_CLASSES

T = TypeVar("T")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """``types`` are whole names; empty means all, but faults only if asked for: people can't act on them.

    ``after`` is exclusive, ``upto`` inclusive (None: to the end).
    """

    types: tuple[str, ...] = ()
    channel: str = ""
    after: int = 0
    upto: int | None = None
    last: int | None = None
    faults: bool = False

    def shows(self, entry: Entry) -> bool:
        """Whether this entry is one of them."""
        return self.takes(entry.data) and (self.faults or bool(self.types) or not is_fault(entry))

    def takes(self, data: object) -> bool:
        """Whether the channel of this payload is the one asked for."""
        if not self.channel:
            return True
        value = msgspec.to_builtins(data)
        return isinstance(value, dict) and channel_of(value) == self.channel

    def first(self, last_seq: int) -> int:
        """Where reading may begin: with no other wish than the last few, just before them."""
        if self.last is None or self.types or self.channel:
            return self.after
        end = last_seq if self.upto is None else min(last_seq, self.upto)
        return max(self.after, end - self.last)

    def further_back(self, after: int, last_seq: int) -> int:
        """An earlier place to begin, since some of what came after ``after`` isn't shown."""
        return max(self.after, last_seq - 4 * (last_seq - after))

    def newest(self, found: Iterable[T]) -> Iterator[T]:
        """All that was found, or only the last of them."""
        return iter(found if self.last is None else deque(found, maxlen=self.last))


def whole_types(asked: list[str], *, telemetry: bool) -> tuple[str, ...]:
    """Every type that one of ``asked`` names, whole or as the beginning of a family: ``cognet:stimulus``."""
    known = TELEMETRY_CLASSES if telemetry else ENTRY_CLASSES
    chosen: list[str] = []
    for name in asked:
        family = name.rstrip(":*") + ":"
        matching = [kind for kind in known if kind == name or kind.startswith(family)]
        if not matching:
            other = "without" if telemetry else "with"
            raise EntryTypeUnknown(
                f"there is no type {name!r}",
                hint=f"There are {', '.join(known)}; others are shown {other} --telemetry.",
                type=name,
            )
        chosen += matching
    return tuple(dict.fromkeys(chosen))
