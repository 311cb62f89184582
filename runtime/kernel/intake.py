"""Stimuli from MQTT to the log: taken in order, acknowledged when durable, confirmed on ``committed/<channel>``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from runtime.abi import topics
from runtime.abi.envelope import REPORT_DECODER, GapReport, HealthReport
from runtime.abi.link import Row
from runtime.abi.telemetry import Gap, Health
from runtime.ingest.ingest import Ingest
from runtime.kernel.alongside import alongside
from runtime.kernel.statistics import Statistics
from runtime.log.log import Log
from runtime.mqtt.client import Connection, Incoming

CONFIRM_S = 0.2


class Intake:
    """Joins one connection's messages to the ingest and the log."""

    def __init__(
        self,
        *,
        agent: str,
        ingest: Ingest,
        log: Log,
        statistics: Statistics,
        tell: Callable[[str, msgspec.Struct], None],
        transient: Callable[[list[Row]], None],
    ) -> None:
        self._agent = agent
        self._transient = transient
        self._ingest = ingest
        self._log = log
        self._statistics = statistics
        self._tell = tell
        self._unacknowledged: deque[tuple[int, Callable[[], None]]] = deque()
        self.delivered: set[str] = set()

    async def serve(self, connection: Connection) -> None:
        """One connection's life: returns or raises when it ends; the caller connects again."""
        self._unacknowledged.clear()  # an acknowledgement never crosses a reconnect; the broker sends again
        await connection.subscribe(topics.sensor_filter(self._agent), qos=1)
        await connection.subscribe(topics.stimulus_filter(self._agent), qos=1)
        async with alongside(self._confirm(connection)):
            async for incoming in connection.messages():
                self._take(incoming)

    def durable(self, seq: int) -> None:
        """Acknowledge what is on the disk now."""
        while self._unacknowledged and self._unacknowledged[0][0] <= seq:
            self._unacknowledged.popleft()[1]()

    def _take(self, incoming: Incoming) -> None:
        if incoming.topic.startswith(f"axon/{self._agent}/sensor/"):
            self._report(incoming)
            incoming.ack()
            return
        taken = self._ingest.take(incoming.topic, incoming.payload, incoming.retained)
        if taken.channel:
            self.delivered.add(taken.channel)
            self._statistics.stimuli.took(
                taken.channel, outcome=taken.outcome, seq=taken.seq, gaps=1 if taken.gap else 0
            )
        if taken.outcome == "transient" and taken.row:
            self._transient([taken.row])
        # A duplicate may be of an entry that isn't durable yet: it waits for all that was admitted before it.
        seq = taken.seq or (self._log.last_seq if taken.outcome == "duplicate" else 0)
        if seq > self._log.durable_seq:
            self._unacknowledged.append((seq, incoming.ack))
        else:
            incoming.ack()

    def _report(self, incoming: Incoming) -> None:
        """A driver tells a gap or a health fact."""
        try:
            report = REPORT_DECODER.decode(incoming.payload)
        except msgspec.MsgspecError as error:
            self._ingest.refuse("STIMULUS_INVALID", channel="", example=f"{incoming.topic[:100]}: {error}")
            return
        if isinstance(report, GapReport):
            self._statistics.stimuli.gap(report.channel)
            self._tell(
                "sensor:gap",
                Gap(
                    channel=report.channel,
                    source=report.id or "",
                    epoch=report.epoch,
                    first=report.first,
                    last=report.last,
                    told=True,
                ),
            )
        elif isinstance(report, HealthReport):
            self._tell("sensor:health", Health(channel=report.channel, state=report.state, facts=dict(report.facts)))

    async def _confirm(self, connection: Connection) -> None:
        """Tell the drivers what is durable, so that their spools may forget it."""
        while True:
            await asyncio.sleep(CONFIRM_S)
            for channel, committed in self._ingest.committed(self._log.durable_seq):
                await connection.publish(topics.committed(self._agent, channel), msgspec.json.encode(committed))


