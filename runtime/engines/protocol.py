"""The messages between kernel and engine worker: msgpack frames over one socket pair, after a ``Hello`` each way.

One worker serves one role. The kernel sends ``Load`` first; the worker answers ``Ready`` or ``LoadFailed``. Every
request has a number of the kernel's; the worker answers it with any number of ``Piece`` and then exactly one ``Done``
or ``Failed``, a cancelled one too: that is when its slot is free again. The kernel never asks more at once than
``Ready.slots``; ``Count`` needs no slot.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from runtime.abi.engines import EngineType, GenerateOptions, Message
from runtime.abi.errors import WireError

WORKER_PROTOCOL = "axon-engine/1"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider is asked to load: what the cognet wants of the role, and what ``axon.toml`` fills it with.

    ``folder`` is the agent's, where relative paths begin; ``options`` are the provider's own keys that were given.
    """

    role: str
    type: EngineType
    input: list[str] = []
    output: list[str] = []
    context: int | None = None
    parallel: int = 1
    provider: str
    model: str
    options: dict[str, Any] = {}
    folder: str = "."


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What every message has in common."""


# -- kernel to worker ------------------------------------------------------------------------------


class Load(_Message, frozen=True):
    """The first message: become this engine."""

    order: Order


class Generate(_Message, frozen=True):
    """Continue the messages; each ``Piece`` is text, ``Done`` carries ``Counts``."""

    request: int
    messages: list[Message]
    options: GenerateOptions


class Count(_Message, frozen=True):
    """How many tokens the messages are as a prompt; ``Done`` carries the number."""

    request: int
    messages: list[Message]


class Transform(_Message, frozen=True):
    """One value into another; ``Done`` carries it."""

    request: int
    value: Any


class Open(_Message, frozen=True):
    """Begin a stream, which holds its slot until ``Done``; each ``Piece`` is a result."""

    request: int


class Push(_Message, frozen=True):
    """The next value of an open stream; ``Took`` answers it."""

    request: int
    value: Any


class Reset(_Message, frozen=True):
    """Forget what was pushed into the stream so far."""

    request: int


class Close(_Message, frozen=True):
    """Nothing more is pushed: tell the rest, then ``Done``."""

    request: int


class Cancel(_Message, frozen=True):
    """Nobody wants the answer any more: end within a token, or a batch of the prompt."""

    request: int


ToWorker: TypeAlias = Load | Generate | Count | Transform | Open | Push | Reset | Close | Cancel

# -- worker to kernel ------------------------------------------------------------------------------


class Ready(_Message, frozen=True):
    """The engine is loaded. ``facts`` are for people: a digest, bytes of memory."""

    context: int | None
    slots: int
    facts: dict[str, Any] = {}


class LoadFailed(_Message, frozen=True):
    """It can't be loaded; the worker ends after this."""

    error: WireError


class Piece(_Message, frozen=True):
    """A part of an answer."""

    request: int
    value: Any


class Took(_Message, frozen=True):
    """The oldest ``Push`` of that stream that wasn't answered yet has been worked on."""

    request: int


class Done(_Message, frozen=True):
    """The end of an answer."""

    request: int
    value: Any = None


class Failed(_Message, frozen=True):
    """The end of a request that has no answer; ``CALL_CANCELLED`` after a ``Cancel``."""

    request: int
    error: WireError


FromWorker: TypeAlias = Ready | LoadFailed | Piece | Took | Done | Failed
