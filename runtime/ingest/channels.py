"""The channels that have spoken, at most so many, and what became of their stimuli."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.abi.errors import ChannelLimit
from runtime.abi.summary import ChannelCounts

MAX_CHANNELS = 1024
_MAX_REJECTED = 256


class Tally:
    """The counts of one channel, as they grow."""

    __slots__ = ("committed", "duplicates", "gaps", "received", "rejected")

    def __init__(self) -> None:
        self.received = self.committed = self.duplicates = self.rejected = self.gaps = 0

    def counts(self) -> ChannelCounts:
        """As they are now."""
        return ChannelCounts(
            received=self.received,
            committed=self.committed,
            duplicates=self.duplicates,
            rejected=self.rejected,
            gaps=self.gaps,
        )


class Channels:
    """A channel takes one of ``MAX_CHANNELS`` places with its first good stimulus.

    Some more that sent nothing good are counted by name too; beyond them rejections are counted by code alone.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._admitted: dict[str, Tally] = {name: Tally() for name in known}
        self._rejected: dict[str, Tally] = {}

    def counts(self) -> dict[str, ChannelCounts]:
        """By channel; those known from the log that haven't spoken yet are left out."""
        all_of_them = {**self._rejected, **self._admitted}
        return {name: tally.counts() for name, tally in sorted(all_of_them.items()) if tally.received}

    def check(self, name: str) -> None:
        """Raise ``ChannelLimit`` if that channel would be one too many."""
        if name not in self._admitted and len(self._admitted) >= MAX_CHANNELS:
            raise ChannelLimit(f"{MAX_CHANNELS} channels have spoken already; {name!r} is one more", channel=name)

    def admitted(self, name: str) -> Tally:
        """The tally of a channel whose stimulus was good; ``check`` came before."""
        tally = self._admitted.get(name)
        if tally is None:
            tally = self._admitted[name] = self._rejected.pop(name) if name in self._rejected else Tally()
        return tally

    def reject(self, name: str) -> None:
        """Count a refused stimulus."""
        tally = self._admitted.get(name) or self._rejected.get(name)
        if tally is None:
            if len(self._rejected) >= _MAX_REJECTED:
                return
            tally = self._rejected[name] = Tally()
        tally.received += 1
        tally.rejected += 1
