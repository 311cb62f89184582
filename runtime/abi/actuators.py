"""How kernel and actuators speak over MQTT: ``command`` one way, ``state`` the other, as docs/actuators.md says."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from runtime.abi.payloads import Number, ShortText

MAX_STATE_BYTES = 4096
MAX_STOP = 2**53 - 1
"""What every JSON library keeps exact."""

Mode: TypeAlias = Literal["safe", "moving", "stopped", "gone"]
Value: TypeAlias = bool | Number
_Whole = Annotated[int, Meta(ge=0, le=MAX_STOP)]
_Word = Annotated[str, Meta(min_length=1, max_length=64)]


class _Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="do"):
    """What every command carries: which start of the kernel sent it, and its number there, from 1.

    Whatever an actuator has obeyed, a command of the same boot with a lower number is older and comes too late.
    """

    boot: _Word
    number: _Whole


class SetValue(_Command, frozen=True, kw_only=True, tag="set"):
    """Take this value, until ``until_ms`` on the actuator's own clock, as its start ``epoch`` counts it.

    ``ttl_ms`` is how long it was meant to hold from when the brain said it, ``seq`` the entry that said so (0: a tool).
    """

    id: _Word
    epoch: _Word
    until_ms: int
    value: Value
    unit: ShortText | None = None
    seq: _Whole = 0
    ttl_ms: _Whole = 0


class TakeSafe(_Command, frozen=True, kw_only=True, tag="safe"):
    """Take the safe action now: the kernel is shutting down."""


class Stop(_Command, frozen=True, kw_only=True, tag="stop"):
    """Emergency stop number ``stop``: obeyed always, late or repeated as it may be, until a release."""

    stop: Annotated[int, Meta(ge=1, le=MAX_STOP)]


class Release(_Command, frozen=True, kw_only=True, tag="release"):
    """A person has cleared the stops up to ``stop``: the safe action goes on, until the next value."""

    stop: _Whole
    epoch: _Word
    until_ms: int


Command: TypeAlias = SetValue | TakeSafe | Stop | Release
COMMAND_DECODER: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)


class ActuatorState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an actuator does now; ``gone`` is its last will.

    ``epoch`` names its start and ``clock_ms`` is its own monotonic clock; ``value`` is what it applies, ``last`` the id
    of the last value it took, ``stop`` the emergency stop that it holds (0: none), ``refused`` how many commands it
    didn't obey since its start, and ``why`` the last of them.
    """

    epoch: _Word
    clock_ms: _Whole
    mode: Mode
    value: Value | None = None
    last: Annotated[str, Meta(max_length=64)] = ""
    stop: _Whole = 0
    refused: _Whole = 0
    why: ShortText = ""


STATE_DECODER: msgspec.json.Decoder[ActuatorState] = msgspec.json.Decoder(ActuatorState)
