"""The kernel's two MQTT connections: stimuli and outputs on one, commands, approvals and status on the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runtime.abi import topics
from runtime.abi.clock import mono_us
from runtime.abi.errors import BrokerUnavailable
from runtime.kernel.alongside import alongside
from runtime.kernel.commands import OFFLINE, Commands
from runtime.kernel.delivery import Delivery
from runtime.kernel.intake import Intake
from runtime.kernel.tools.announcer import Announcer
from runtime.mqtt.client import BrokerAddress, Connection, Will, keep_connected

GOODBYE_S = 2.0
STARTING_US = 5_000_000


class Exchange:
    """Keeps both connections for as long as the kernel runs."""

    def __init__(
        self,
        *,
        agent: str,
        intake: Intake,
        delivery: Delivery,
        commands: Commands,
        announcer: Announcer,
        say: Callable[[str], None],
    ) -> None:
        self._agent = agent
        self._intake = intake
        self._delivery = delivery
        self._commands = commands
        self._announcer = announcer
        self._say = say
        self._tasks: list[asyncio.Task[None]] = []
        self._online: Connection | None = None
        self._started_us = mono_us()
        self._away = False

    def start(self, address: BrokerAddress) -> None:
        """Connect and stay connected. The broker keeps the stimuli's session while this kernel is away."""
        stimuli = address.named(f"axon-{self._agent}-kernel", clean_session=False)
        commands = address.named(f"axon-{self._agent}-commands")
        will = Will(topic=topics.status(self._agent), payload=OFFLINE, qos=1, retain=True)
        self._tasks = [
            asyncio.create_task(keep_connected(stimuli, self._stimuli, tell=self._tell)),
            asyncio.create_task(keep_connected(commands, self._serve_commands, will=will)),
        ]
        for task in self._tasks:
            task.add_done_callback(_check)

    async def close(self) -> None:
        """Say that this agent is offline, and leave."""
        if self._online:
            try:
                async with asyncio.timeout(GOODBYE_S):
                    await self._online.publish(topics.status(self._agent), OFFLINE, qos=1, retain=True)
            except (TimeoutError, BrokerUnavailable):
                pass  # the last will says it instead
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GOODBYE_S)

    async def _stimuli(self, connection: Connection) -> None:
        async with alongside(self._delivery.serve(connection)):
            await self._intake.serve(connection)

    async def _serve_commands(self, connection: Connection) -> None:
        self._online = connection
        try:
            async with alongside(self._announcer.serve(connection)):
                await self._commands.serve(connection)
        finally:
            self._online = None

    def _tell(self, error: BrokerUnavailable | None) -> None:
        """Once when it is lost, once when it is back; a private broker may take a moment to begin."""
        if error and mono_us() - self._started_us < STARTING_US:
            return
        if error and not self._away:
            self._say(f"[kernel] {error.message}; trying again until it answers")
        elif error is None and self._away:
            self._say("[kernel] the MQTT broker is back")
        self._away = error is not None


def _check(task: asyncio.Task[None]) -> None:
    """A defect must not hide in a task that nobody awaits."""
    if not task.cancelled():
        task.result()
