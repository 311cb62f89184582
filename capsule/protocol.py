"""The messages between the kernel and a capsule's guest, as msgpack frames over one socket pair.

The guest runs code that nobody trusts in the process that speaks this protocol: whatever it sends may be forged.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from capsule.result import RunResult
from capsule.scope import AxonScope

CAPSULE_PROTOCOL = "axon-capsule/1"
MAX_FROM_GUEST = 2 * 1024 * 1024
"""Bytes of one message of the guest."""

Short = Annotated[str, Meta(max_length=256)]


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What every message has in common."""


class ToolCall(_Message, frozen=True):
    """A block calls ``module.member`` with plain values; ``block`` is the block's id, which is its action's."""

    block: Short
    module: Short
    member: Short
    args: list[Any]
    kwargs: dict[str, Any]


# -- kernel to guest -------------------------------------------------------------------------------


class Order(msgspec.Struct, frozen=True, array_like=True):
    """One block to execute."""

    id: str
    code: str


class Execute(_Message, frozen=True):
    """One run: a lone block in the main thread, several in a thread each."""

    blocks: list[Order]


class Stop(_Message, frozen=True):
    """End that block; a lone one is also sent SIGINT."""

    block: str


class Scoped(_Message, frozen=True):
    """What blocks can import from now on."""

    scope: AxonScope


class Answer(_Message, frozen=True):
    """The end of the tool call of that number; ``error`` is its text, ``denied`` whether it was refused."""

    call: int
    value: Any = None
    error: str | None = None
    denied: bool = False


ToGuest: TypeAlias = Execute | Stop | Scoped | Answer

# -- guest to kernel -------------------------------------------------------------------------------


class Ready(_Message, frozen=True):
    """The guest is locked and takes blocks."""


class Started(_Message, frozen=True):
    """That block begins; its time counts from here."""

    block: Short


class Settled(_Message, frozen=True):
    """That block has ended."""

    block: Short
    result: RunResult


class Asked(_Message, frozen=True):
    """A tool call that wants an ``Answer`` under this number."""

    call: Annotated[int, Meta(ge=0, le=2**53)]
    tool: ToolCall


FromGuest: TypeAlias = Ready | Started | Settled | Asked
