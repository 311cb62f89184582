"""The spool: one channel's stimuli from their capture until the kernel confirms that they are durable.

A stimulus is sent once, and again when that may be needed: after a reconnect, and when nothing has been confirmed
for some seconds (a broker keeps nothing for a kernel that hasn't subscribed). Sending is always in counter order, and
begins with the oldest alone: only its confirmation proves that the kernel listens, and were others sent before, the
kernel might see a later one first and count those before as lost. Between confirmations at most a window is under
way, so an absent kernel never fills the broker: the oldest are dropped here, counted, and reported.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

import msgspec


class SpoolBounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a spool holds at most, what may be under way unconfirmed, and how long it waits; seconds, bytes.

    After ``patience_s`` without a confirmation it begins again with the oldest alone: a probe. A probe that isn't
    answered is repeated after ``probe_s``, twice as long each time up to ``probe_max_s``, and from the third on with
    twice as many up to ``probe_count``, since the oldest may be one that the kernel refuses.
    """

    max_count: int = 2000
    max_bytes: int = 32 * 1024 * 1024
    window_count: int = 256
    window_bytes: int = 8 * 1024 * 1024
    patience_s: float = 3.0
    probe_s: float = 1.0
    probe_max_s: float = 5.0
    probe_count: int = 16


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """One encoded stimulus and its counter."""

    seq: int
    payload: bytes


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """Counters that were dropped, both included."""

    first: int
    last: int


class Spool:
    """Decides what to send next and what to forget; no clock and no connection of its own.

    ``now`` is monotonic seconds. Counters must be added in rising order.
    """

    def __init__(self, bounds: SpoolBounds, *, transient: bool = False) -> None:
        self._bounds = bounds
        self._transient = transient
        self._items: deque[Spooled] = deque()
        self._bytes = 0
        self._sent = 0  # so many from the left were sent since the last rewind
        self._window = [0, 0]  # stimuli and bytes sent since the last confirmation; a drop doesn't take them back
        self._confirmed = 0
        self._proven = False  # that the kernel listens, on this connection
        self._unanswered = 0  # probes
        self._quiet_since: float | None = None  # since when what is under way waits; None: nothing is
        self._dropped: list[Dropped] = []
        self.dropped_count = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def proven(self) -> bool:
        """Whether the kernel has confirmed anything since it was last in doubt that it listens."""
        return self._proven

    @property
    def oldest(self) -> int | None:
        """The counter of the first that is held; None when none is."""
        return self._items[0].seq if self._items else None

    @property
    def size_bytes(self) -> int:
        """Bytes held."""
        return self._bytes

    @property
    def unsent(self) -> int:
        """How many have not been sent since the last rewind."""
        return len(self._items) - self._sent

    def add(self, item: Spooled) -> None:
        """Take a new stimulus; the oldest make room for it."""
        self._items.append(item)
        self._bytes += len(item.payload)
        while len(self._items) > self._bounds.max_count or self._bytes > self._bounds.max_bytes:
            self._drop(self._pop())

    def next(self, now: float) -> Spooled | None:
        """What to send now, which counts as sent from here on; None when all is sent or the window is full."""
        if self._sent == len(self._items) or self._window_full():
            return None
        if self._transient:
            return self._pop()
        item = self._items[self._sent]
        self._sent += 1
        self._window[0] += 1
        self._window[1] += len(item.payload)
        if self._quiet_since is None:
            self._quiet_since = now
        return item

    def confirm(self, seq: int, now: float) -> None:
        """Everything up to ``seq`` is durable: forget it, never to be sent again."""
        if seq <= self._confirmed:
            return
        self._confirmed = seq
        while self._items and self._items[0].seq <= seq:
            self._pop()
        self._proven = True
        sent = list(islice(self._items, self._sent))
        self._window = [len(sent), sum(len(item.payload) for item in sent)]
        self._quiet_since = now if sent else None

    def rewind(self) -> None:
        """Begin again with the oldest: the connection is a new one."""
        self._begin_again()
        self._unanswered = 0

    def check(self, now: float) -> None:
        """Begin again with the oldest if nothing was confirmed for too long."""
        if self._quiet_since is None or now - self._quiet_since < self._patience_s():
            return
        self._unanswered = 0 if self._proven else self._unanswered + 1
        self._begin_again()

    def take_dropped(self) -> list[Dropped]:
        """The ranges dropped since the last call."""
        taken, self._dropped = self._dropped, []
        return taken

    def drop_unsent(self) -> None:
        """Give up what was never sent: the driver is ending."""
        kept = [self._items.popleft() for _ in range(self._sent)]
        for item in self._items:
            self._drop(item)
        self._items = deque(kept)
        self._bytes = sum(len(item.payload) for item in kept)

    def _begin_again(self) -> None:
        self._sent, self._window = 0, [0, 0]
        self._proven = False
        self._quiet_since = None

    def _patience_s(self) -> float:
        if self._proven:
            return self._bounds.patience_s
        return float(min(self._bounds.probe_s * 2 ** min(self._unanswered, 30), self._bounds.probe_max_s))

    def _window_full(self) -> bool:
        probe = min(2 ** min(max(self._unanswered - 1, 0), 30), self._bounds.probe_count)
        count = self._bounds.window_count if self._proven else probe
        return self._window[0] >= count or self._window[1] >= self._bounds.window_bytes

    def _pop(self) -> Spooled:
        item = self._items.popleft()
        self._bytes -= len(item.payload)
        self._sent = max(self._sent - 1, 0)
        return item

    def _drop(self, item: Spooled) -> None:
        self.dropped_count += 1
        last = self._dropped[-1] if self._dropped else None
        if last is not None and last.last == item.seq - 1:
            self._dropped[-1] = Dropped(first=last.first, last=item.seq)
        else:
            self._dropped.append(Dropped(first=item.seq, last=item.seq))
