"""The loop that every driver shares: hear commands, put them into the hardware, tell the state, and rest in time."""

from __future__ import annotations

import asyncio
import contextlib
import time

import msgspec

from actuators.guard import Guard
from actuators.hardware import Hardware
from actuators.settings import DriverSettings
from runtime.abi import topics
from runtime.abi.actuators import COMMAND_DECODER, Release, SetValue, Stop, TakeSafe
from runtime.abi.ids import uuid7
from runtime.mqtt.client import BackOff, Connection, Incoming, Will, keep_connected

REPORT_S = 0.2
"""The state is told at least so often: the kernel reads the actuator's clock from it."""
FAREWELL_S = 0.4
_BACK_OFF = BackOff(most_s=1.0)


class Driver:
    """One start of a driver, named by its ``epoch``; made inside a running event loop."""

    def __init__(self, settings: DriverSettings, hardware: Hardware) -> None:
        self.guard = Guard(epoch=uuid7(), safe=settings.safe)
        self._address = settings.broker
        self._hardware = hardware
        self._hears = topics.actuator_command(settings.agent, settings.name)
        self._tells = topics.actuator_state(settings.agent, settings.name)
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()
        self._ending = asyncio.Event()
        self._rest("it starts")

    async def run(self) -> None:
        """Obey until ``end``; the safe action is taken at the beginning and the end, and held while nobody speaks."""
        gone = msgspec.json.encode(self.guard.state(clock_ms(), gone=True))
        will = Will(topic=self._tells, payload=gone, retain=False)
        connecting = asyncio.ensure_future(keep_connected(self._address, self.serve, will=will, back_off=_BACK_OFF))
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait([connecting, ending], return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                await asyncio.wait([connecting], timeout=FAREWELL_S)
        finally:
            self._rest("it ends")
            for task in (connecting, ending):
                task.cancel()
            await asyncio.wait([connecting, ending])
            self._hardware.close()
        if not connecting.cancelled():
            connecting.result()

    def end(self, why: str) -> None:
        """Take the safe action now, say so for a moment, and let ``run`` return."""
        self._rest(why)
        self._ending.set()
        self._news.set()

    async def serve(self, connection: Connection) -> None:
        """One connection's life, made for ``keep_connected``: returns only after ``end``."""
        await connection.subscribe(self._hears, qos=1)
        reporting = asyncio.ensure_future(self._report(connection))
        listening = asyncio.ensure_future(self._listen(connection))
        try:
            await asyncio.wait([reporting, listening], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reporting, listening):
                task.cancel()
            await asyncio.wait([reporting, listening])
        for task in (reporting, listening):
            if not task.cancelled():
                task.result()

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.messages():
            self.hear(message)
            message.ack()

    async def _report(self, connection: Connection) -> None:
        """Tell the state every now and then, and at once when it changes; the last one says that it is gone."""
        while True:
            self._news.clear()
            gone = self._ending.is_set()
            state = self.guard.state(clock_ms(), gone=gone)
            await connection.publish(self._tells, msgspec.json.encode(state), qos=1)
            if gone:
                return
            with contextlib.suppress(TimeoutError):  # nothing new: the clock is told all the same
                async with asyncio.timeout(REPORT_S):
                    await self._news.wait()

    def hear(self, message: Incoming) -> None:
        """One command: obey it or count it; bytes that are none move nothing."""
        if message.retained:
            self.guard.refuse("a retained command is told again at every reconnect")
            return
        try:
            command = COMMAND_DECODER.decode(message.payload)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self.guard.refuse(f"unreadable: {error}")
            return
        before, now_ms = self.guard.mode, clock_ms()
        if self.guard.take(command, now_ms):
            return
        match command:
            case SetValue():
                self._hardware.apply(command.value, command=command.id)
                self._wait_for(command.until_ms - now_ms)
            case TakeSafe():
                self._rest("the kernel asked for it")
            case Stop():
                self._rest(f"emergency stop {command.stop}")
            case Release():
                self._rest(f"emergency stop {command.stop} was cleared")
        if self.guard.mode != before or not isinstance(command, SetValue):
            self._news.set()

    def _wait_for(self, in_ms: int) -> None:
        """The value holds for so long; a newer one begins the count again."""
        if self._due is not None:
            self._due.cancel()
        self._due = self._loop.call_later((in_ms + 1) / 1000, self._expire)

    def _expire(self) -> None:
        now_ms = clock_ms()
        if self.guard.expire(now_ms):
            self._rest("nothing was heard in time")
            self._news.set()
        elif self.guard.until_ms is not None:
            self._wait_for(self.guard.until_ms - now_ms)

    def _rest(self, why: str) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self.guard.rest()
        self._hardware.rest(self.guard.value, why=why)


def clock_ms() -> int:
    """The actuator's own clock: monotonic, and it goes on while the machine sleeps, so that what is old stays old."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
