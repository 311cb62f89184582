"""Stimuli from MQTT to the log: taken in order, acknowledged when durable, confirmed on ``committed/<channel>``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from runtime.abi import topics
from runtime.abi.errors import KernelStopping
from runtime.abi.link import Row
from runtime.ingest.ingest import Ingest
from runtime.kernel.alongside import alongside
from runtime.log.log import Log
from runtime.mqtt.client import Connection, Incoming

CONFIRM_S = 0.2


class Intake:
    """Joins one connection's messages to the ingest and the log; ``transient`` takes what no log keeps."""

    def __init__(self, *, agent: str, ingest: Ingest, log: Log, transient: Callable[[list[Row]], None]) -> None:
        self._agent = agent
        self._reports = topics.sensor_report(agent, "")
        self._ingest = ingest
        self._log = log
        self._transient = transient
        self._unacknowledged: deque[tuple[int, Callable[[], None]]] = deque()
        self.listening = False
        """Whether the broker brings stimuli now: drivers wait until the status says so."""
        self.changed: Callable[[], None] = lambda: None

    async def serve(self, connection: Connection) -> None:
        """One connection's life: ends when it is lost; the caller connects again."""
        self._unacknowledged.clear()  # an acknowledgement never crosses a reconnect; the broker sends again
        await connection.subscribe(topics.sensor_filter(self._agent), qos=1)
        await connection.subscribe(topics.stimulus_filter(self._agent), qos=1)
        self._listen(True)
        try:
            async with alongside(self._confirm(connection)):
                async for incoming in connection.messages():
                    self._take(incoming)
        finally:
            self._listen(False)

    def _listen(self, listening: bool) -> None:  # noqa: FBT001 (private, two callers)
        self.listening = listening
        self.changed()

    def durable(self, seq: int) -> None:
        """Acknowledge what is on the disk now."""
        while self._unacknowledged and self._unacknowledged[0][0] <= seq:
            self._unacknowledged.popleft()[1]()

    def _take(self, incoming: Incoming) -> None:
        if incoming.topic.startswith(self._reports):
            self._ingest.report(incoming.topic, incoming.payload)
            incoming.ack()
            return
        taken = self._ingest.take(incoming.topic, incoming.payload, incoming.retained)
        if isinstance(taken.error, KernelStopping):
            return  # unacknowledged: the broker, or the driver's spool, has it for the next boot
        if taken.data is not None:
            self._transient([self._log.transient(taken.type, taken.data)])
        # A duplicate may be of an entry that isn't durable yet: it waits for all that was admitted before it.
        seq = self._log.last_seq if taken.outcome == "duplicate" else taken.seq
        if seq > self._log.durable_seq:
            self._unacknowledged.append((seq, incoming.ack))
        else:
            incoming.ack()

    async def _confirm(self, connection: Connection) -> None:
        """Tell the drivers what is durable, so that their spools may forget it."""
        while True:
            await asyncio.sleep(CONFIRM_S)
            for channel, committed in self._ingest.committed(self._log.durable_seq):
                await connection.publish(topics.committed(self._agent, channel), msgspec.json.encode(committed))
