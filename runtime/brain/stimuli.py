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
        self._logged: deque[_Arrived] = deque()
        self._transient: deque[_Arrived] = deque(maxlen=window.capacity)
        self._lost = 0

    @property
    def cursor(self) -> int:
        """Up to where ticks have seen."""
        return self._cursor

    def add(self, row: Row) -> None:
        """Take a row that the window has taken; other types than stimuli and what was seen before are passed over."""
        if not row.type.startswith(STIMULUS_PREFIX):
            return
        if row.seq == 0:
            self._lost += len(self._transient) == self._transient.maxlen
            self._transient.append(_Arrived(self._window.last_seq, 0, row.body))
        elif row.seq > self._cursor:
            self._logged.append(_Arrived(row.seq, row.seq, row.body))
            self._drop_left()

    def _drop_left(self) -> None:
        """What left the window is read from the log instead."""
        while self._logged[0].seq < self._window.first_seq:
            self._logged.popleft()

    def take_lost(self) -> int:
        """Transient stimuli, since last asked, that no tick took before as many as the window holds had come after."""
        lost, self._lost = self._lost, 0
        return lost

    def take(self) -> Stimuli:
        """Everything since the last tick start; it will not be given again."""
        left_upto = self._window.first_seq - 1
        older = self._session.get(after=self._cursor, upto=left_upto) if self._cursor < left_upto else None
        arrived = [each for each in self._logged if each.seq > left_upto]
        if self._transient:
            arrived = sorted([*arrived, *self._transient], key=lambda each: each.position)  # stable: logged ones first
        self._logged.clear()
        self._transient.clear()
        self._cursor = self._window.last_seq
        return Stimuli(arrived, older)


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
