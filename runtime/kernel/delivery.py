"""Durable outputs to MQTT: each output entry is published once it is on the disk, and dropped when nobody can hear."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from runtime.abi import topics
from runtime.abi.entries import OUTPUT_PREFIX, decode
from runtime.abi.link import Row
from runtime.mqtt.client import Connection

MAX_WAITING = 1024
GATHER_S = 0.005
"""A lone output goes out at once; of a burst, what comes in this time goes out together and costs the brain less."""


class Delivery:
    """Outputs wait here for the connection; the oldest go first when too many wait."""

    def __init__(self, *, agent: str) -> None:
        self._agent = agent
        self._waiting: deque[Row] = deque(maxlen=MAX_WAITING)
        self._some = asyncio.Event()
        self.dropped = 0

    def durable(self, rows: list[Row]) -> None:
        """Take the outputs among entries that are on the disk now."""
        for row in rows:
            if row.type.startswith(OUTPUT_PREFIX):
                self.dropped += len(self._waiting) == MAX_WAITING
                self._waiting.append(row)
                self._some.set()

    async def serve(self, connection: Connection) -> None:
        """Publish for as long as the connection lives; what waited for it goes first."""
        self._some.set()
        while True:
            await self._some.wait()
            self._some.clear()
            while self._waiting:
                await self._publish(connection, self._waiting.popleft())
            await asyncio.sleep(GATHER_S)

    async def _publish(self, connection: Connection, row: Row) -> None:
        entry = decode(row.body, row.seq)
        data = msgspec.to_builtins(entry.data)
        channel = data.pop("channel")
        payload = msgspec.json.encode({"seq": row.seq, **data})
        await connection.publish(topics.output(self._agent, row.type.removeprefix(OUTPUT_PREFIX), channel), payload)
