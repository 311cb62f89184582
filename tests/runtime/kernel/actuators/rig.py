"""Actuators of an agent with a wire that keeps what would be sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from runtime.abi.actuators import Command, SetValue
from runtime.abi.clock import mono_us
from runtime.abi.entries import EntryContext
from runtime.abi.errors import BrokerUnavailable
from runtime.abi.link import Row
from runtime.abi.topics import actuator_state
from runtime.kernel.actuators.actuators import Actuators
from runtime.kernel.stop import StopLatch, StopState
from runtime.log.admission import Admission
from runtime.log.chain import GENESIS
from runtime.mqtt.client import Incoming

from .conftest import actuator, policy, state

TABLE = {
    "steer": actuator(),
    "rear": actuator(min=-0.5, max=0.5),
    "lamp": actuator(channel="lamp", safe=False, min=None, max=None),
    "arm": actuator(channel=None, tool="arm.move", argument="angle", min=0.0, max=90.0),
}


class Kept:
    """In the place of the wire to a broker: ``crowded`` and ``away`` as the test says."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Command]] = []
        self.crowded = False
        self.open = True

    def send(self, name: str, command: Command) -> None:
        if not self.open:
            raise BrokerUnavailable("no connection to the broker")
        self.sent.append((name, command))

    def values(self) -> list[tuple[str, Any]]:
        return [(name, command.value) for name, command in self.sent if isinstance(command, SetValue)]


class Rig:
    """Actuators that have all been heard, their wire, their latch and what they wrote down."""

    def __init__(self) -> None:
        self.latch = StopLatch(Path("/nowhere"), StopState(latched=False))
        self.entries: list[str] = []
        self.told: list[msgspec.Struct] = []
        self.actuators = Actuators(
            TABLE,
            agent="test",
            boot="b",
            latch=self.latch,
            check=policy().check,
            tell=lambda _type, data: self.told.append(data),
            record=lambda _kind, _text, **facts: self.entries.append(facts["code"]),
        )
        self.wire = Kept()
        self.actuators._wire = self.wire  # type: ignore[assignment]  # what a broker would hear
        context = EntryContext(agent_id="test", session_id="s", boot_id="b")
        self.admission = Admission(context, last_seq=0, last_chain=GENESIS)
        for commander in self.actuators._commanders.values():
            commander.heard(state(mono_us()), mono_us())

    def row(self, value: Any, channel: str = "steer") -> Row:
        data = {"channel": channel, "reading": {"value": value}}
        return self.admission.place("cognet:output:field", self.admission.body("cognet:output:field", data))[0]

    def output(self, *values: Any, channel: str = "steer") -> None:
        self.actuators.durable([self.row(value, channel) for value in values])

    def tell(self, name: str, payload: bytes, *, retained: bool = False) -> None:
        """The actuator publishes a state."""
        topic = actuator_state("test", name)
        self.actuators._hear(name, Incoming(topic=topic, payload=payload, retained=retained, qos=1, ack=lambda: None))

    def stop(self) -> None:
        self.latch.latch(by="ann")
        self.actuators.announce()

    def clear(self) -> None:
        self.latch.clear(by="ann")
        self.actuators.announce()
