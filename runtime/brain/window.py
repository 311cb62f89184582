"""The resident window: the raw bodies of the newest entries, in a ring of bounded size."""

from __future__ import annotations

from capsule.errors import FrameInvalid

MAX_BYTES = 16 * 1024 * 1024
"""Entries are about 400 bytes; a sensor that sends long ones must not fill the board's memory."""


class Window:
    """Bodies of consecutive ``seq``, at most ``capacity`` of them and ``MAX_BYTES`` in all.

    The loop's thread alone appends; any thread may read. ``log_end`` is the log's end when the brain
    was welcomed: rows up to it may be missing, later ones may not.
    """

    def __init__(self, *, capacity: int, log_end: int) -> None:
        self._ring: list[bytes] = [b""] * capacity
        self._bytes = 0
        self._log_end = log_end
        self._first = log_end + 1
        self._last = log_end

    @property
    def capacity(self) -> int:
        """How many entries are resident at most."""
        return len(self._ring)

    @property
    def first_seq(self) -> int:
        """The oldest resident entry; one above ``resident_upto`` when there is none."""
        return self._first

    @property
    def resident_upto(self) -> int:
        """The newest resident entry."""
        return self._last

    @property
    def last_seq(self) -> int:
        """The newest entry that was admitted, resident or not."""
        return max(self._last, self._log_end)

    def append(self, seq: int, body: bytes) -> None:
        """Take the next entry; raises ``FrameInvalid`` when the kernel left one out or repeats one."""
        if seq != self._last + 1:
            self._restart(seq)
        place = seq % len(self._ring)
        if seq - self._first >= len(self._ring):
            self._first = seq - len(self._ring) + 1
        self._bytes += len(body) - len(self._ring[place])
        self._ring[place] = body
        self._last = seq
        while self._bytes > MAX_BYTES and self._first < seq:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        place = self._first % len(self._ring)
        self._first += 1  # before its body goes: a thread that reads it looks here again
        self._bytes -= len(self._ring[place])
        self._ring[place] = b""

    def _restart(self, seq: int) -> None:
        """The tail that was sent at the beginning starts anywhere, and may be cut before the log's end."""
        is_tail = seq <= self._log_end and self._first > self._last
        is_first_live = seq == self._log_end + 1 and self._last < self._log_end
        if not (is_tail or is_first_live):
            raise FrameInvalid(f"entry {seq} came after entry {self._last}", seq=seq, last_seq=self._last)
        self._first, self._last = seq, seq - 1

    def bodies(self, first: int, last: int) -> list[bytes] | None:
        """The bodies of that range; None when a part of it isn't resident (any more)."""
        if first < self._first or last > self._last:
            return None
        ring, size = self._ring, len(self._ring)
        found = [ring[seq % size] for seq in range(first, last + 1)]
        return found if first >= self._first else None  # overwritten while a thread was reading
