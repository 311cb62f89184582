"""What a tick is given: the stimuli admitted since the last tick start, each exactly once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import msgspec

from runtime.abi.entries import STIMULUS_PREFIX, Entry, decode
from runtime.abi.link import Row
from runtime.brain.history import History, Session
from runtime.brain.window import Window


class _Arrived(NamedTuple):
    """``position`` is the log's end when it came, which also orders transient ones (``seq`` 0)."""

    position: int
    seq: int
    body: bytes


class Stimuli(Sequence[Entry]):
    """Stimuli in the order of their admission, decoded when first looked at.

    ``older`` holds those that left the resident window before a tick took them, among other entries.
    """

    def __init__(self, arrived: list[_Arrived], older: History | None = None) -> None:
        self._arrived = arrived
        self._older = older
        self._decoded: list[Entry] | None = None

    def _resident(self) -> list[Entry]:
        if self._decoded is None:
            self._decoded = [decode(each.body, each.seq) for each in self._arrived]
        return self._decoded

    def __iter__(self) -> Iterator[Entry]:
        for entry in self._older or ():
            if entry.type.startswith(STIMULUS_PREFIX):
                yield entry
        yield from self._resident()

    def __len__(self) -> int:
        if self._older is None:
            return len(self._arrived)
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        return (self._resident() if self._older is None else list(self))[index]

    def __repr__(self) -> str:
        return f"<{len(self._arrived)} stimuli{' and older ones' if self._older is not None else ''}>"


class Inbox:
    """Collects stimuli for the next tick start; bounded by the resident window."""

    def __init__(self, *, window: Window, session: Session, cursor: int) -> None:
        self._window = window
        self._session = session
        self._cursor = cursor
        self._arrived: deque[_Arrived] = deque()
        self._left_upto = window.first_seq - 1  # what is at or below this isn't kept here, only in the log
        self.lost_transient = 0

    @property
    def cursor(self) -> int:
        """Up to where ticks have seen."""
        return self._cursor

    def add(self, row: Row) -> None:
        """Take a row that the window has taken; other types than stimuli and what was seen before are passed over."""
        if row.type.startswith(STIMULUS_PREFIX) and (row.seq == 0 or row.seq > self._cursor):
            self._arrived.append(_Arrived(row.seq or self._window.last_seq, row.seq, row.body))
        self._drop_left()

    def _drop_left(self) -> None:
        """What left the window is read from the log instead; a transient one is lost, and counted."""
        first = self._window.first_seq
        self._left_upto = first - 1
        arrived = self._arrived
        while arrived and arrived[0].position < first - 1:
            if arrived.popleft().seq == 0:
                self.lost_transient += 1

    def take(self) -> Stimuli:
        """Everything since the last tick start; it will not be given again."""
        older = None
        if self._cursor < self._left_upto:
            older = self._session.get(after=self._cursor, upto=self._left_upto)
        taken = [each for each in self._arrived if each.seq == 0 or each.seq > self._left_upto]
        self._arrived.clear()
        self._cursor = self._window.last_seq
        return Stimuli(taken, older)


class _SourceOnly(msgspec.Struct):
    """The part of a stimulus that a mask looks at."""

    channel: str


class _DataOnly(msgspec.Struct):
    """The same, one level up."""

    source: _SourceOnly


class _EntryOnly(msgspec.Struct):
    """The same, of a whole body."""

    data: _DataOnly


_channel_decoder = msgspec.json.Decoder(_EntryOnly)


class Mask:
    """What wakes an invocation cognet: ``kind`` or ``kind:channel``."""

    def __init__(self, wake_on: Sequence[str]) -> None:
        pairs = [item.partition(":") for item in wake_on]
        self._kinds = {STIMULUS_PREFIX + kind for kind, _, channel in pairs if not channel}
        self._channels = {(STIMULUS_PREFIX + kind, channel) for kind, _, channel in pairs if channel}
        self._looked_into = {type_ for type_, _ in self._channels}

    def selects(self, type_: str, body: bytes) -> bool:
        """Whether this stimulus wakes."""
        if type_ in self._kinds:
            return True
        return (
            type_ in self._looked_into and (type_, _channel_decoder.decode(body).data.source.channel) in self._channels
        )

    def selects_entry(self, entry: Entry) -> bool:
        """The same for a decoded entry."""
        source = getattr(entry.data, "source", None)
        return entry.type in self._kinds or (source is not None and (entry.type, source.channel) in self._channels)
