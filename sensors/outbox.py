"""The outbox: sends what the spools hold over one connection after another, and hears what is confirmed."""

from __future__ import annotations

import asyncio
import contextlib
import time

import msgspec

from runtime.abi import topics
from runtime.abi.envelope import Committed
from runtime.mqtt.client import Connection
from sensors.capture import Stimulus
from sensors.reports import Reports
from sensors.spool import Spool, SpoolBounds

SOCKET_PACKETS = 32  # more wait in the spool, where they are counted and bounded
SOCKET_PAUSE_S = 0.02
CHECK_S = 0.5
FAREWELL_S = 0.4


class Outbox:
    """One spool a channel; everything but ``serve`` works without a connection. Lives in the event loop's thread."""

    def __init__(
        self,
        *,
        agent: str,
        source_id: str | None,
        epoch: str,
        reports: Reports,
        channels: tuple[str, ...],
        bounds: SpoolBounds,
        transient: bool = False,
    ) -> None:
        self._agent = agent
        self._source_id = source_id
        self._epoch = epoch
        self._reports = reports
        self._qos = 0 if transient else 1
        self._transient = transient
        self._topics: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._ending = False
        self.spools = {channel: Spool(bounds, transient=transient) for channel in channels}

    def add(self, stimuli: list[Stimulus]) -> None:
        """Take what was captured."""
        for stimulus in stimuli:
            self._topics[stimulus.channel] = topics.stimulus(self._agent, stimulus.kind, stimulus.channel)
            spool = self.spools[stimulus.channel]
            spool.add(stimulus.item)
            self._reports.add_gaps(stimulus.channel, spool.take_dropped())
        self._changed.set()

    def end(self) -> None:
        """Nothing more comes: ``serve`` sends what it can for a moment, reports the rest as gaps, and returns."""
        self._ending = True
        self._changed.set()

    async def serve(self, connection: Connection) -> None:
        """Send and listen on this connection until ``end``; made for ``keep_connected``."""
        for spool in self.spools.values():
            spool.rewind()
        if not self._transient:
            for channel in self.spools:
                await connection.subscribe(topics.committed(self._agent, channel), qos=1)
        helpers = [asyncio.create_task(self._report_on(connection)), asyncio.create_task(self._listen(connection))]
        for task in helpers:
            task.add_done_callback(lambda _: self._changed.set())
        try:
            await self._send_on(connection, helpers)
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.wait(helpers)
        await self._farewell(connection)

    # -- sending ------------------------------------------------------------------------------------

    async def _send_on(self, connection: Connection, helpers: list[asyncio.Task[None]]) -> None:
        """Send whenever there is something to send, until the end; an error of a helper is raised here."""
        while not self._ending:
            for task in helpers:
                if task.done():
                    task.result()
            now = time.monotonic()
            for spool in self.spools.values():
                spool.check(now)
            await self._send_all(connection)
            with contextlib.suppress(TimeoutError):  # nothing happened: look at the clocks all the same
                async with asyncio.timeout(CHECK_S):
                    await self._changed.wait()

    async def _send_all(self, connection: Connection) -> None:
        """Everything that may be sent now, one of each channel in turn."""
        self._changed.clear()
        while self._send_round(connection):
            await asyncio.sleep(0)  # the socket is written at the end of this turn
            while connection.unsent >= SOCKET_PACKETS:
                await asyncio.sleep(SOCKET_PAUSE_S)
                connection.check()

    def _send_round(self, connection: Connection) -> bool:
        now, sent = time.monotonic(), False
        for channel, spool in self.spools.items():
            item = spool.next(now)
            if item is not None:
                connection.send(self._topics[channel], item.payload, qos=self._qos)
                sent = True
        return sent

    async def _farewell(self, connection: Connection) -> None:
        """Send the rest and the last reports, for a moment.

        The last word is acknowledged, so all before it has arrived: a socket that is closed while something unread
        lies in it resets the connection, and the broker would lose what it hadn't read yet.
        """
        with contextlib.suppress(TimeoutError):  # what didn't get out is a gap
            async with asyncio.timeout(FAREWELL_S):
                await self._send_all(connection)
        for channel, spool in self.spools.items():
            spool.drop_unsent()
            self._reports.add_gaps(channel, spool.take_dropped())
        self._reports.add_health("stopped")
        with contextlib.suppress(TimeoutError):  # a broker that doesn't answer now won't
            async with asyncio.timeout(FAREWELL_S / 2):
                await self._report(connection)

    # -- reports and confirmations ------------------------------------------------------------------

    async def _report_on(self, connection: Connection) -> None:
        """Publish what there is to report, every now and then, once it is known that the kernel listens."""
        while True:
            if self._transient or any(spool.proven for spool in self.spools.values()):
                await self._report(connection)
            await asyncio.sleep(CHECK_S)

    async def _report(self, connection: Connection) -> None:
        """Publish all reports; keep what the broker didn't take."""
        waiting = self._reports.take()
        try:
            while waiting:
                topic = topics.sensor_report(self._agent, waiting[0].channel)
                await connection.publish(topic, msgspec.json.encode(waiting[0]), qos=1)
                del waiting[0]
        finally:
            self._reports.put_back(waiting)

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.messages():
            self.hear(message.topic, message.payload)
            message.ack()

    def hear(self, topic: str, payload: bytes) -> None:
        """A confirmation; one that is another source's or epoch's says nothing about this driver."""
        try:
            said = msgspec.json.decode(payload, type=Committed)
        except msgspec.MsgspecError as error:
            self._reports.add_health("confirmation_unreadable", count=1, why=str(error)[:200])
            return
        spool = self.spools.get(topic.rpartition("/")[2])
        if spool is not None and (said.id, said.epoch) == (self._source_id, self._epoch):
            spool.confirm(said.seq, time.monotonic())
            self._changed.set()
