"""How a stimulus travels over MQTT: JSON for text and field, a msgpack map with the bytes for audio and visual.

JSON is the payload of the entry without ``source.channel`` (the topic has it): ``{"content": ...}`` or
``{"reading": {...}}``, each with optional ``id`` and ``captured``. The msgpack map has the same fields, with
``bytes`` where the entry has ``ref``. ``captured`` is ``{epoch, ms, seq}``.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from runtime.abi import payloads as p

MAX_BYTES = {"text": 256 * 1024, "field": 64 * 1024, "audio": 4 * 1024 * 1024, "visual": 8 * 1024 * 1024}
Blob = Annotated[bytes, Meta(min_length=1)]


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every envelope has in common."""

    id: p.ShortText | None = None
    captured: p.Captured | None = None


class TextEnvelope(_Envelope, frozen=True, kw_only=True):
    """Words."""

    content: p.Text


class FieldEnvelope(_Envelope, frozen=True, kw_only=True):
    """A value."""

    reading: p.Reading


class AudioEnvelope(_Envelope, frozen=True, kw_only=True):
    """A block of sound."""

    bytes: Blob
    transcript: p.Text | None = None
    duration_ms: Annotated[float, Meta(ge=0, le=86_400_000)] | None = None


class VisualEnvelope(_Envelope, frozen=True, kw_only=True):
    """A picture; ``kind`` is its encoding, such as ``image/jpeg``."""

    bytes: Blob
    kind: p.ShortText
    width: p.Size
    height: p.Size
    caption: p.Text | None = None


Envelope: TypeAlias = TextEnvelope | FieldEnvelope | AudioEnvelope | VisualEnvelope

_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()
DECODERS: dict[str, msgspec.json.Decoder[Envelope] | msgspec.msgpack.Decoder[Envelope]] = {
    "text": msgspec.json.Decoder(TextEnvelope),
    "field": msgspec.json.Decoder(FieldEnvelope),
    "audio": msgspec.msgpack.Decoder(AudioEnvelope),
    "visual": msgspec.msgpack.Decoder(VisualEnvelope),
}


def encode(envelope: Envelope) -> bytes:
    """The bytes to publish."""
    if isinstance(envelope, TextEnvelope | FieldEnvelope):
        return _json.encode(envelope)
    return _msgpack.encode(envelope)


class Committed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The kernel's confirmation on ``committed/<channel>``, as JSON: all up to ``seq`` of that epoch is durable.

    A duplicate is confirmed again: its driver sends it because the first confirmation didn't reach it, and sends
    nothing more until one does.
    """

    id: str | None = None
    epoch: str
    seq: int


class GapReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="gap"):
    """A driver dropped what its spool couldn't hold: its counters ``first`` to ``last``."""

    channel: p.Channel
    id: p.ShortText | None = None
    epoch: Annotated[str, Meta(min_length=1, max_length=64)]
    first: p.Count
    last: p.Count


class HealthReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="health"):
    """A fact about a sensor, such as ``{"state": "stalled"}``."""

    channel: p.Channel
    state: p.ShortText
    facts: dict[str, p.ShortText | int | float | bool] = {}


SensorReport: TypeAlias = GapReport | HealthReport
REPORT_DECODER: msgspec.json.Decoder[SensorReport] = msgspec.json.Decoder(SensorReport)
