"""What a media store is, and the one that lives in memory."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

MAX_AGE_S = 24 * 3600.0


class MediaRing(Protocol):
    """Bytes by ref, ``sha256:<hex>``; the oldest leave when the room or their time is over."""

    @property
    def size_bytes(self) -> int:
        """The bytes kept, wherever they are."""

    @property
    def resident_bytes(self) -> int:
        """The bytes kept in memory."""

    def stage(self, data: bytes) -> str:
        """Keep bytes and return their ref; readable at once, on the disk after ``flush``. Memory only."""

    def flush(self) -> None:
        """Make what was staged durable, where the store is. Blocks; the log's writer calls it; never raises."""

    def shed(self) -> None:
        """The disk is full: give its room to the log. Blocks; the log's writer calls it; never raises."""

    def get(self, ref: str) -> bytes | None:
        """The bytes, or None when they were evicted, never kept, or damaged. May block; any thread."""

    def close(self) -> None:
        """Let go of everything."""


def ref_of(data: bytes) -> str:
    """The address of bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class MemoryRing:
    """A ring in memory: it is gone when the kernel ends."""

    def __init__(
        self, *, max_bytes: int, max_age_s: float = MAX_AGE_S, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._now = now
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """The bytes kept."""
        return self._bytes

    @property
    def resident_bytes(self) -> int:
        """The bytes kept."""
        return self._bytes

    def stage(self, data: bytes) -> str:
        """Keep bytes; the oldest go to make room. The same bytes again count as new."""
        ref = ref_of(data)
        with self._lock:
            self._drop(ref)
            self._kept[ref] = (self._now(), data)
            self._bytes += len(data)
            self._evict()
        return ref

    def flush(self) -> None:
        """Nothing: memory is all there is."""

    def shed(self) -> None:
        """Nothing: it takes no room on the disk."""

    def get(self, ref: str) -> bytes | None:
        """The bytes while they are kept."""
        with self._lock:
            self._evict()
            found = self._kept.get(ref)
        return None if found is None else found[1]

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _evict(self) -> None:
        oldest = self._now() - self._max_age_s
        while self._kept:
            ref, (since, _) = next(iter(self._kept.items()))
            if self._bytes <= self._max_bytes and since >= oldest:
                return
            self._drop(ref)

    def _drop(self, ref: str) -> None:
        found = self._kept.pop(ref, None)
        if found is not None:
            self._bytes -= len(found[1])
