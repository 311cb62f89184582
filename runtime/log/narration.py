"""Telemetry on its way to its table: packed into one row a second, bounded, and never a reason to sync."""

from __future__ import annotations

import threading
import time
from collections import deque

import apsw
import msgspec

from runtime.abi.clock import mono_us
from runtime.abi.telemetry import Fact, TelemetryEvent

MAX_WAITING = 20_000
PACK_S = 1.0

_encoder = msgspec.json.Encoder()


class Narration:
    """Events wait in memory until a transaction of entries takes them along."""

    def __init__(self, *, keep_events: int) -> None:
        self._keep_events = keep_events
        self._waiting: deque[TelemetryEvent] = deque(maxlen=MAX_WAITING)
        self._lock = threading.Lock()
        self._packed_at = time.monotonic()
        self._stored = 0
        self._untold = 0
        self.dropped = 0
        self.suspended = False  # no room on the disk: telemetry gives way to entries

    def tell(self, event: TelemetryEvent) -> None:
        """Queue an event; when too many wait, the oldest goes and is counted. Any thread."""
        with self._lock:
            if len(self._waiting) == MAX_WAITING:
                self.dropped += 1
                self._untold += 1
            self._waiting.append(event)

    def due(self, *, closing: bool = False) -> bool:
        """Whether the next transaction should take the events along."""
        if not self._waiting or self.suspended:
            return False
        return closing or time.monotonic() - self._packed_at >= PACK_S

    def pack(self) -> list[TelemetryEvent]:
        """Take what waits."""
        with self._lock:
            events = list(self._waiting)
            self._waiting.clear()
            untold, self._untold = self._untold, 0
        self._packed_at = time.monotonic()
        if untold and events:
            note = Fact(message="telemetry was dropped", facts={"count": untold})
            lost = TelemetryEvent(
                type="kernel:telemetry:dropped", mono_us=mono_us(), after_seq=events[0].after_seq, data=note
            )
            events.insert(0, lost)
        return events

    def put_back(self, events: list[TelemetryEvent]) -> None:
        """The transaction failed: they wait again, in their order."""
        with self._lock:
            room = MAX_WAITING - len(self._waiting)
            kept = events[max(len(events) - room, 0) :]
            self.dropped += len(events) - len(kept)
            self._waiting.extendleft(reversed(kept))

    def opened(self, connection: apsw.Connection) -> None:
        """Count what the table holds."""
        self._stored = connection.execute("SELECT ifnull(sum(events), 0) FROM telemetry").get

    def write(self, connection: apsw.Connection, events: list[TelemetryEvent]) -> None:
        """Store the events as one row, inside a transaction, and let go of the oldest beyond the bound."""
        connection.execute(
            "INSERT INTO telemetry(after_seq, events, body) VALUES (?, ?, ?)",
            (events[-1].after_seq, len(events), _encoder.encode(events)),
        )
        self._stored += len(events)
        while self._stored > self._keep_events:
            oldest = "SELECT id, events FROM telemetry ORDER BY id LIMIT 1"
            first, events_there = connection.execute(oldest).get
            connection.execute("DELETE FROM telemetry WHERE id = ?", (first,))
            self._stored -= events_there
