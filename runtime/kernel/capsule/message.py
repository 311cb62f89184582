"""A guest's message as the kernel takes it: checked for its size at each place before anything is built from it.

A few bytes of msgpack can stand for a large structure: four million empty lists fit into a frame, and would keep the
kernel's loop busy for seconds. So what a guest may shape freely stays bytes until it is known to be small enough.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Raw

from capsule.errors import FrameInvalid
from capsule.protocol import Asked, FromGuest, Ready, Settled, Short, Started, ToolCall
from capsule.result import Absent, BlockError, CapsuleScope, RunResult

MAX_PLAIN_BYTES = 800_000
"""Of a value that holds others, of a scope's values, and of a call's arguments: what an honest guest never exceeds."""
MAX_PARTS = 60_000
"""Of the same."""
MAX_LINES = 120_000
MAX_NAMES = 2_000
CAREFUL_BYTES = 16_384
"""Above this the collector rests: it would look at every list again and again while they come into being."""
TEXTS = frozenset([*range(0xA0, 0xC0), 0xD9, 0xDA, 0xDB])
"""How a text begins in msgpack: it costs its length whatever it says."""


class _Message(msgspec.Struct, frozen=True, array_like=True):
    """What the wire's forms have in common."""


class _Scope(msgspec.Struct, frozen=True):
    values: Raw = Raw(b"\x80")
    unavailable: Annotated[list[Absent], Meta(max_length=MAX_NAMES)] = []


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    value: Raw = Raw(b"\xc0")
    stdout: Annotated[list[str], Meta(max_length=MAX_LINES)] = []
    scope: _Scope = _Scope()
    error: BlockError | None = None
    value_error: str | None = None
    cut: str | None = None


class _Settled(_Message, frozen=True, tag="Settled"):
    block: Short
    result: _Result


class _ToolCall(_Message, frozen=True, tag="ToolCall"):
    block: Short
    module: Short
    member: Short
    args: Raw
    kwargs: Raw


class _Asked(_Message, frozen=True, tag="Asked"):
    call: Annotated[int, Meta(ge=0, le=2**53)]
    tool: _ToolCall


_FromGuest: TypeAlias = Ready | Started | _Settled | _Asked

_decoder = msgspec.msgpack.Decoder(_FromGuest)
_anything = msgspec.msgpack.Decoder()
_list = msgspec.msgpack.Decoder(list[Any])
_names = msgspec.msgpack.Decoder(dict[str, Any])


def decoded(payload: bytes) -> FromGuest:
    """The message; raises ``FrameInvalid``, or what msgspec raises, for one that no honest guest sends."""
    message = _decoder.decode(payload)
    match message:
        case _Settled(block, result):
            return Settled(block, _result(result))
        case _Asked(call, tool):
            return Asked(call, _tool_call(tool))
        case Ready() | Started():
            return message


def _result(result: _Result) -> RunResult:
    return RunResult(
        ok=result.ok,
        value=_decoded(result.value, _anything),
        stdout=result.stdout,
        scope=CapsuleScope(values=_decoded(result.scope.values, _names), unavailable=result.scope.unavailable),
        error=result.error,
        value_error=result.value_error,
        cut=result.cut,
    )


def _tool_call(tool: _ToolCall) -> ToolCall:
    args, kwargs = _decoded(tool.args, _list), _decoded(tool.kwargs, _names)
    return ToolCall(tool.block, tool.module, tool.member, args, kwargs)


def _decoded(raw: Raw, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    data = memoryview(raw)
    if len(data) <= CAREFUL_BYTES or data[0] in TEXTS:
        return decoder.decode(data)
    if len(data) > MAX_PLAIN_BYTES:
        raise FrameInvalid(f"the capsule's guest sent a value of {len(data):,} bytes", size_bytes=len(data))
    with _uncollected():
        value = decoder.decode(data)
        _count(value)
    return value


def _count(value: Any) -> None:
    """Raise ``FrameInvalid`` for more parts than a value of an honest guest has."""
    parts, level = 0, [value]
    while level:
        below: list[Any] = []
        for each in level:
            if type(each) is list or type(each) is dict:
                parts += len(each)
                if parts > MAX_PARTS:
                    raise FrameInvalid(f"the capsule's guest sent a value of more than {MAX_PARTS:,} parts")
                below += each.values() if type(each) is dict else each
        level = below


@contextmanager
def _uncollected() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
