"""The two sockets for people and their tools: ``control`` asks the kernel for something, ``bus`` watches it.

Both begin with a ``Hello`` each way. Control takes any number of ``Request``s and gives each its ``Answer``, when
it has it. On the bus the observer sends one ``Subscribe`` and then only reads; whoever reads too slowly gets a
``Skipped``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from runtime.abi.errors import WireError
from runtime.abi.link import Row
from runtime.abi.telemetry import TelemetryEvent

CONTROL_PROTOCOL = "axon-control/1"
BUS_PROTOCOL = "axon-bus/1"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """``verb`` is such as say, interrupt, stop, summary, exec; ``args`` are its named arguments.

    ``number`` comes back with the answer: answers may overtake each other.
    """

    verb: str
    args: dict[str, Any] = {}
    number: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the request of that number."""

    value: Any = None
    error: WireError | None = None
    number: int = 0


class Subscribe(msgspec.Struct, frozen=True, kw_only=True):
    """What an observer wants: entries once they are durable, telemetry as it happens."""

    entries: bool = True
    telemetry: bool = False


class Durable(msgspec.Struct, frozen=True, tag=True):
    """Entries that are on the disk now."""

    rows: list[Row]


class Narrated(msgspec.Struct, frozen=True, tag=True):
    """Telemetry events."""

    events: list[TelemetryEvent]


class Skipped(msgspec.Struct, frozen=True, tag=True):
    """This observer was too slow: so many messages were not sent to it."""

    messages: int


FromBus: TypeAlias = Durable | Narrated | Skipped


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """``data/run.json`` of a running agent: where its sockets and its broker are.

    ``command`` is the pid of the command that this kernel was started for and ends with; 0 for ``axon run``.
    """

    pid: int
    agent: str
    session: str
    boot_id: str
    control: str
    bus: str
    broker: str
    command: int = 0
