"""The ledger: up to which counter the stimuli of every source are known, and how far that is durable."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from runtime.abi.envelope import Committed
from runtime.abi.errors import ChannelLimit, SourceConflict
from runtime.abi.marks import Mark
from runtime.abi.payloads import Captured

MAX_SOURCES = 4096
RETIRED_KEPT = 8
_TOLD_KEPT = 256


class Account:
    """One epoch of one source: ``high`` is admitted, ``durable`` may be confirmed, ``announced`` was."""

    __slots__ = ("announced", "channel", "durable", "epoch", "high", "source_id")

    def __init__(self, *, channel: str, source_id: str, epoch: str, high: int) -> None:
        self.channel = channel
        self.source_id = source_id
        self.epoch = epoch
        self.high = high
        self.durable = 0
        self.announced = 0

    def confirmation(self) -> Committed:
        """What the driver is told."""
        return Committed(id=self.source_id or None, epoch=self.epoch, seq=self.durable)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a counter means: a duplicate, or news after a hole of ``first`` to ``last`` (or none: None)."""

    duplicate: bool = False
    hole: tuple[int, int] | None = None


class _Source:
    """The epochs of one source: the live one, and the last that it replaced, oldest first."""

    __slots__ = ("live", "retired")

    def __init__(self) -> None:
        self.live: Account | None = None
        self.retired: dict[str, Account] = {}


class Ledger:
    """Counters are judged first and taken after the entry is admitted, so a refusal in between changes nothing.

    The first message of an epoch that isn't known takes over its source: the epoch before is retired. What a retired
    epoch sends above its mark is a conflict: two drivers are live under one id. A counter that jumps leaves a hole,
    which nothing fills later. What was never seen of an epoch before its first message is a hole too.
    """

    def __init__(self, marks: Iterable[Mark] = ()) -> None:
        self._sources: dict[tuple[str, str], _Source] = {}
        self._unannounced: dict[int, Account] = {}
        self._told: dict[tuple[str, str, str], list[int]] = {}
        for mark in marks:
            self._restore(mark)

    def _restore(self, mark: Mark) -> None:
        """What the log holds is durable; the live ones are announced at once, for drivers that missed it."""
        account = Account(channel=mark.channel, source_id=mark.source_id, epoch=mark.epoch, high=mark.high)
        account.durable = mark.high
        source = self._sources.setdefault((mark.channel, mark.source_id), _Source())
        if mark.retired:
            _retire(source, account)
            return
        if source.live is not None:
            _retire(source, source.live)
        source.live = account
        self._unannounced[id(account)] = account

    def channels(self) -> set[str]:
        """The channels of all sources."""
        return {channel for channel, _ in self._sources}

    # -- counters -----------------------------------------------------------------------------------

    def judge(self, channel: str, source_id: str, captured: Captured) -> Judgement:
        """Decide; changes nothing but that a duplicate is confirmed again. Raises what refuses it."""
        source = self._sources.get((channel, source_id))
        if source is None and len(self._sources) >= MAX_SOURCES:
            raise ChannelLimit(
                f"{MAX_SOURCES} sources have sent already; {source_id[:64]!r} on {channel!r} is one more",
                channel=channel,
            )
        account = None if source is None else self._known(source, captured.epoch)
        if account is None:
            return Judgement(hole=(1, captured.seq - 1) if captured.seq > 1 else None)
        if captured.seq <= account.high:
            self._repeat(account)
            return Judgement(duplicate=True)
        if source is None or account is not source.live:
            raise SourceConflict(
                f"two drivers send as {source_id or 'the only source'!r} on {channel!r}: "
                f"epoch {captured.epoch!r} was replaced and goes on",
                channel=channel,
                source=source_id,
                epoch=captured.epoch,
            )
        hole = (account.high + 1, captured.seq - 1) if captured.seq > account.high + 1 else None
        return Judgement(hole=hole)

    def take(self, channel: str, source_id: str, captured: Captured) -> Account:
        """The stimulus of that counter was admitted; returns its account, for ``settle``."""
        source = self._sources.setdefault((channel, source_id), _Source())
        account = source.live
        if account is None or account.epoch != captured.epoch:
            if account is not None:
                _retire(source, account)
            account = Account(channel=channel, source_id=source_id, epoch=captured.epoch, high=0)
            source.live = account
        account.high = captured.seq
        return account

    def settle(self, account: Account, counter: int) -> None:
        """The stimulus of that counter is durable (or needs not be); in rising order."""
        account.durable = counter
        self._unannounced[id(account)] = account

    def announcements(self) -> list[tuple[str, Committed]]:
        """Channel and confirmation of every account that moved, or was asked again, since the last call."""
        due = [account for account in self._unannounced.values() if account.durable]
        self._unannounced.clear()
        return [(account.channel, account.confirmation()) for account in due]

    def _known(self, source: _Source, epoch: str) -> Account | None:
        if source.live is not None and source.live.epoch == epoch:
            return source.live
        return source.retired.get(epoch)

    def _repeat(self, account: Account) -> None:
        """A driver that sends again what is known has missed the confirmation."""
        if account.durable:
            self._unannounced[id(account)] = account

    # -- gaps that drivers tell ---------------------------------------------------------------------

    def told(self, channel: str, source_id: str, epoch: str, hole: tuple[int, int]) -> None:
        """A driver says that it dropped these; ranges that touch are one."""
        key = (channel, source_id, epoch)
        known = self._told.get(key)
        if known is not None and known[0] <= hole[0] <= known[1] + 1:
            known[1] = max(known[1], hole[1])
            return
        self._told.pop(key, None)
        self._told[key] = [hole[0], hole[1]]
        while len(self._told) > _TOLD_KEPT:
            del self._told[next(iter(self._told))]

    def was_told(self, channel: str, source_id: str, epoch: str, hole: tuple[int, int]) -> bool:
        """Whether the driver itself said that it dropped all of these."""
        known = self._told.get((channel, source_id, epoch))
        return known is not None and known[0] <= hole[0] and hole[1] <= known[1]


def _retire(source: _Source, account: Account) -> None:
    source.retired[account.epoch] = account
    while len(source.retired) > RETIRED_KEPT:
        del source.retired[next(iter(source.retired))]
