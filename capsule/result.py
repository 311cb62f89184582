"""What comes of a block of model-written code: one value, never an exception."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

ErrorKind = Literal["timeout", "interrupt", "exception"]
AbsenceReason = Literal["function", "circular", "unserializable", "oversized"]


class Absent(msgspec.Struct, frozen=True):
    """A name that the block bound and whose value couldn't cross; ``reason`` says why."""

    name: str
    reason: AbsenceReason


class CapsuleScope(msgspec.Struct, frozen=True, kw_only=True):
    """The names that a block bound at top level: ``values`` that crossed, ``unavailable`` the others."""

    values: dict[str, Any] = {}
    unavailable: list[Absent] = []


class BlockError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a block failed; timeout, interrupt and exception are one shape."""

    kind: ErrorKind
    message: str


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one block.

    ``value`` is its last expression when ``ok``; ``value_error`` says why that couldn't be serialised.
    ``stdout`` has one item a ``print``, without its last newline. ``cut`` tells what was left out.
    """

    ok: bool
    value: Any = None
    stdout: list[str] = []
    scope: CapsuleScope = CapsuleScope()
    error: BlockError | None = None
    value_error: str | None = None
    cut: str | None = None
