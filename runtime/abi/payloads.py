"""The payload of every entry type, as one frozen struct each; units are SI unless a name says otherwise."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Channel = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""A channel's name: up to 64 letters, digits, dots, hyphens and underscores."""
Ref = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$")]
"""The address of bytes in the media store."""
ShortText = Annotated[str, Meta(max_length=256)]
Text = Annotated[str, Meta(max_length=65_536)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Size = Annotated[int, Meta(ge=1, le=65_536)]
Number = Annotated[float, Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]


class _Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """What every payload has in common: frozen, named fields, unknown ones refused.

    Decoded data hold no cycles, so the collector needn't walk them: a brain may keep millions.
    """


class Source(_Payload, frozen=True, kw_only=True):
    """Where a stimulus came from: its channel, and which device on it when several share one."""

    channel: Channel
    id: ShortText | None = None


class Captured(_Payload, frozen=True, kw_only=True):
    """The driver's own account: ``epoch`` names its start, ``ms`` its clock, ``seq`` its counter (from 1)."""

    epoch: Annotated[str, Meta(min_length=1, max_length=64)]
    ms: Whole
    seq: Count


class Reading(_Payload, frozen=True, kw_only=True):
    """A measured or commanded value with its unit; a list of numbers for a vector."""

    value: bool | Whole | Number | ShortText | list[Number]
    unit: ShortText | None = None

    def __post_init__(self) -> None:
        value = self.value
        finite = all(map(isfinite, value)) if type(value) is list else type(value) is not float or isfinite(value)
        if not finite:
            raise ValueError("a reading must be finite")


class Chunk(_Payload, frozen=True, kw_only=True):
    """Ties an output to the others of one emission; ``final`` closes the group."""

    of: Annotated[str, Meta(min_length=1, max_length=64)]
    final: bool = False


class TextStimulus(_Payload, frozen=True, kw_only=True):
    """Words that reached the agent."""

    source: Source
    content: Text
    captured: Captured | None = None


class AudioStimulus(_Payload, frozen=True, kw_only=True):
    """A block of sound in the media store."""

    source: Source
    ref: Ref
    transcript: Text | None = None
    duration_ms: Annotated[float, Meta(ge=0, le=86_400_000)] | None = None
    captured: Captured | None = None


class VisualStimulus(_Payload, frozen=True, kw_only=True):
    """A picture in the media store; ``kind`` is its encoding, such as ``image/jpeg``; pixels."""

    source: Source
    ref: Ref
    kind: ShortText
    width: Size
    height: Size
    caption: Text | None = None
    captured: Captured | None = None


class FieldStimulus(_Payload, frozen=True, kw_only=True):
    """One measured value."""

    source: Source
    reading: Reading
    captured: Captured | None = None


class TextOutput(_Payload, frozen=True, kw_only=True):
    """Words that the agent emits."""

    channel: Channel
    content: Text
    chunk: Chunk | None = None


class AudioOutput(_Payload, frozen=True, kw_only=True):
    """Sound that the agent emits."""

    channel: Channel
    ref: Ref
    transcript: Text | None = None
    duration_ms: Annotated[float, Meta(ge=0, le=86_400_000)] | None = None
    chunk: Chunk | None = None


class VisualOutput(_Payload, frozen=True, kw_only=True):
    """A picture that the agent emits."""

    channel: Channel
    ref: Ref
    kind: ShortText
    width: Size
    height: Size
    caption: Text | None = None
    chunk: Chunk | None = None


class FieldOutput(_Payload, frozen=True, kw_only=True):
    """One value that the agent emits, such as a steering angle; it moves nothing by itself."""

    channel: Channel
    reading: Reading
    chunk: Chunk | None = None


class PythonAction(_Payload, frozen=True, kw_only=True):
    """A block of Python that the kernel is about to execute; ``action`` names it for its result."""

    action: ShortText
    code: Annotated[str, Meta(max_length=200_000)]


class ActionError(_Payload, frozen=True, kw_only=True):
    """Why a block failed."""

    kind: Literal["timeout", "interrupt", "exception"]
    message: Text


class AbsentName(_Payload, frozen=True, kw_only=True):
    """A name that a block bound and whose value isn't there; ``reason`` says why."""

    name: ShortText
    reason: Literal["function", "circular", "unserializable", "oversized"]


class ActionScope(_Payload, frozen=True, kw_only=True):
    """The names that a block bound at top level: ``values`` by name, ``unavailable`` those without one."""

    values: dict[str, Any] = {}
    unavailable: list[AbsentName] = []


class ActionResult(_Payload, frozen=True, kw_only=True):
    """What came of a block: ``value`` and ``scope`` when ``ok``, else ``error``; ``cut`` tells what was left out."""

    action: ShortText
    ok: bool
    value: Any = None
    value_error: ShortText | None = None
    stdout: list[str] = []
    scope: ActionScope = ActionScope()
    error: ActionError | None = None
    cut: ShortText | None = None


class Interrupt(_Payload, frozen=True, kw_only=True):
    """Somebody cancelled every wake admitted before this entry."""

    by: ShortText
    reason: ShortText | None = None
    command: ShortText | None = None


class SystemMessage(_Payload, frozen=True, kw_only=True):
    """A fact of the machine that the brain may have to know; ``type`` such as ``recovery`` or ``stop``."""

    type: ShortText
    text: Text
    facts: dict[str, Any] = {}


class Settled(_Payload, frozen=True, kw_only=True):
    """An invocation wake ended; it has answered for everything up to ``upto_seq``."""

    upto_seq: Count
