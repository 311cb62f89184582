"""The connection to the actuators, one of its own: nothing on it ever queues behind stimuli or outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from runtime.abi import topics
from runtime.abi.actuators import Command, Stop, TakeSafe
from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.client import BackOff, BrokerAddress, Connection, Incoming, keep_connected

MAX_UNSENT = 16
"""With more packets waiting for the socket a value isn't added to them: it would be an old one when it gets out."""
_BACK_OFF = BackOff(most_s=1.0)


class Wire:
    """Keeps connected. A value is sent once, on the connection of this moment, or not at all."""

    def __init__(
        self, *, agent: str, names: Iterable[str], heard: Callable[[str, Incoming], None], connected: Callable[[], None]
    ) -> None:
        self._agent = agent
        self._names = {topics.actuator_state(agent, name): name for name in names}
        self._heard = heard
        self._connected = connected
        self._connection: Connection | None = None

    async def serve(self, address: BrokerAddress) -> None:
        """Connect and stay connected, until cancelled."""
        await keep_connected(address.named(f"axon-{self._agent}-actuators"), self._serve, back_off=_BACK_OFF)

    @property
    def open(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None and not self._connection.lost.done()

    @property
    def crowded(self) -> bool:
        """Whether so much waits for the socket that a value has to wait outside, where a newer one takes its place."""
        return self._connection is not None and self._connection.unsent >= MAX_UNSENT

    def send(self, name: str, command: Command) -> None:
        """Hand it to the socket, in this turn of the loop; raises ``BrokerUnavailable``.

        A value goes out at most once (QoS 0): the next one is better than a repeated one. What ends a motion, or
        allows the next, goes out at least once (QoS 1), and is numbered, so that a repetition is known as one.
        """
        if self._connection is None:
            raise BrokerUnavailable("no connection to the broker")
        topic = topics.actuator_command(self._agent, name)
        qos = 1 if isinstance(command, Stop | TakeSafe) else 0
        self._connection.send(topic, msgspec.json.encode(command), qos=qos)

    async def _serve(self, connection: Connection) -> None:
        for topic in self._names:
            await connection.subscribe(topic, qos=1)
        self._connection = connection
        try:
            self._connected()
            async for incoming in connection.messages():
                if name := self._names.get(incoming.topic):
                    self._heard(name, incoming)
                incoming.ack()
        finally:
            self._connection = None
