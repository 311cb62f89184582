"""Interrupt, stop and approvals over MQTT, on a connection of their own, and the retained status with its last will."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from runtime.abi import topics
from runtime.abi.errors import CommandRefused
from runtime.ingest.command import Command, CommandGate
from runtime.kernel.alongside import alongside
from runtime.mqtt.client import Connection


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The retained message on ``axon/<agent>/status``."""

    state: str
    stopped: bool = False
    session: str = ""
    boot: str = ""


OFFLINE = msgspec.json.encode(Status(state="offline"))


class Commands:
    """Serves one connection: commands in, status out."""

    def __init__(
        self,
        *,
        agent: str,
        gate: CommandGate,
        status: Callable[[], Status],
        act: Callable[[Command], Awaitable[None]],
        refused: Callable[[CommandRefused], None],
    ) -> None:
        self._agent = agent
        self._gate = gate
        self._status = status
        self._act = act
        self._refused = refused
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """The status isn't what was published last."""
        self._changed.set()

    async def serve(self, connection: Connection) -> None:
        """One connection's life."""
        for name in ("stop", "interrupt", "approve"):
            await connection.subscribe(topics.command(self._agent, name), qos=1)
        async with alongside(self._publish(connection)):
            async for incoming in connection.messages():
                name = incoming.topic.rpartition("/")[2]
                try:
                    command = self._gate.take(name, incoming.payload, incoming.retained)
                except CommandRefused as error:
                    self._refused(error)
                else:
                    await self._act(command)
                incoming.ack()

    async def _publish(self, connection: Connection) -> None:
        while True:
            self._changed.clear()
            await connection.publish(
                topics.status(self._agent), msgspec.json.encode(self._status()), qos=1, retain=True
            )
            await self._changed.wait()
