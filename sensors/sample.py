"""What a source hands over: one stimulus before the driver numbers it; and what every source can do."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import msgspec

from runtime.abi.envelope import AudioEnvelope, Envelope, FieldEnvelope, TextEnvelope, VisualEnvelope

KINDS: dict[type[Envelope], str] = {
    TextEnvelope: "text",
    FieldEnvelope: "field",
    AudioEnvelope: "audio",
    VisualEnvelope: "visual",
}


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One stimulus as it was captured; ``envelope`` has no ``captured`` yet."""

    channel: str
    envelope: Envelope

    @property
    def kind(self) -> str:
        """``text``, ``field``, ``audio`` or ``visual``."""
        return KINDS[type(self.envelope)]


class SourcePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a source is made from: ``argument`` is what follows the colon, ``fps`` captures a second."""

    channel: str
    argument: str
    fps: float
    options: Any


class Source(Protocol):
    """Where a driver's samples come from; made from one ``SourcePlan``, used by one thread.

    The constructor opens what it needs and raises ``SourceUnreadable`` when that can't be used.
    """

    default_fps: ClassVar[float]
    Options: ClassVar[type[msgspec.Struct]]

    def __init__(self, plan: SourcePlan) -> None: ...

    @property
    def channels(self) -> tuple[str, ...]:
        """Every channel on which samples may come."""

    def capture(self, counter: int) -> list[Sample]:
        """The samples of capture number ``counter`` (from 1); may block; raises ``SourceUnreadable``."""

    def close(self) -> None:
        """Let go of files and devices."""


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source that has nothing to set."""
