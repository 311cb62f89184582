"""The messages between kernel and tools host, as msgpack frames over one socket pair.

Both say hello; the kernel sends ``Load``; the host tells each module that it imports and then ``Ready``; from then on
every ``Invoke`` has exactly one answer, ``Returned`` or ``Raised``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from capsule.scope import Module, Unavailable

TOOLS_PROTOCOL = "axon-tools/1"
MAX_VALUE_BYTES = 1024 * 1024
"""The arguments of one call, and what it returns, are no longer than this: the kernel's loop reads them."""
THREADS = 16
"""Calls of plain functions that run at once; further ones wait for a thread."""


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What every message has in common."""


class Load(_Message, frozen=True):
    """Import the modules, but not those in ``skip``, which ended a host before: by name, with the reason."""

    skip: dict[str, str]


class Invoke(_Message, frozen=True):
    """Call that tool; ``call`` numbers the call."""

    call: int
    module: str
    member: str
    args: list[Any]
    kwargs: dict[str, Any]


class Abandon(_Message, frozen=True):
    """Nobody waits for that call any more: what hasn't begun doesn't, what is async is cancelled."""

    call: int


class Ping(_Message, frozen=True):
    """Are you alive?"""

    number: int


FromKernel: TypeAlias = Load | Invoke | Abandon | Ping


class Loading(_Message, frozen=True):
    """This module is being imported now."""

    module: str


class Ready(_Message, frozen=True):
    """What can be called, and what can't."""

    modules: list[Module]
    unavailable: list[Unavailable]


class Returned(_Message, frozen=True):
    """What a call returned."""

    call: int
    value: Any


class Raised(_Message, frozen=True):
    """Why a call returned nothing: the exception's class and words, and where in its own code it happened."""

    call: int
    message: str


class Pong(_Message, frozen=True):
    """The host's loop turns."""

    number: int


FromHost: TypeAlias = Loading | Ready | Returned | Raised | Pong
