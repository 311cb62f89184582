"""Entries: the envelope of everything in the session log, one class a type, and their JSON form.

The body of a row is an entry as JSON without its ``seq``, which the log gives later; ``decode`` puts it back.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from runtime.abi import payloads as p


class EntryTime(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """``seq`` is the order (0: not in the log); ``ms`` the wall clock; ``mono_us`` monotonic within a boot."""

    ms: int
    mono_us: int
    seq: int = 0


class EntryContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Whose entry it is; ``cursor`` is the ``seq`` up to which the tick that caused it had seen."""

    agent_id: str
    session_id: str
    boot_id: str
    wake_id: str | None = None
    cursor: int | None = None


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", gc=False):
    """What every entry carries besides its ``data``."""

    id: str
    time: EntryTime
    context: EntryContext

    @property
    def type(self) -> str:
        """The type's name, such as ``cognet:stimulus:field``."""
        return str(self.__struct_config__.tag)

    @property
    def seq(self) -> int:
        """Short for ``time.seq``."""
        return self.time.seq


class TextStimulusEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:stimulus:text"):
    """Words arrived."""

    data: p.TextStimulus


class AudioStimulusEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:stimulus:audio"):
    """Sound arrived."""

    data: p.AudioStimulus


class VisualStimulusEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:stimulus:visual"):
    """A picture arrived."""

    data: p.VisualStimulus


class FieldStimulusEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:stimulus:field"):
    """A value arrived."""

    data: p.FieldStimulus


class TextOutputEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:output:text"):
    """The agent emitted words."""

    data: p.TextOutput


class AudioOutputEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:output:audio"):
    """The agent emitted sound."""

    data: p.AudioOutput


class VisualOutputEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:output:visual"):
    """The agent emitted a picture."""

    data: p.VisualOutput


class FieldOutputEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:output:field"):
    """The agent emitted a value."""

    data: p.FieldOutput


class PythonActionEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:action:python"):
    """A block is about to be executed."""

    data: p.PythonAction


class ActionResultEntry(_Envelope, frozen=True, kw_only=True, tag="cognet:action:result"):
    """A block ended."""

    data: p.ActionResult


class InterruptEntry(_Envelope, frozen=True, kw_only=True, tag="axon:interrupt"):
    """Wakes were cancelled."""

    data: p.Interrupt


class SystemMessageEntry(_Envelope, frozen=True, kw_only=True, tag="axon:system:message"):
    """The machine tells a fact."""

    data: p.SystemMessage


class SettledEntry(_Envelope, frozen=True, kw_only=True, tag="axon:agent:settled"):
    """An invocation wake ended."""

    data: p.Settled


Entry: TypeAlias = (
    TextStimulusEntry
    | AudioStimulusEntry
    | VisualStimulusEntry
    | FieldStimulusEntry
    | TextOutputEntry
    | AudioOutputEntry
    | VisualOutputEntry
    | FieldOutputEntry
    | PythonActionEntry
    | ActionResultEntry
    | InterruptEntry
    | SystemMessageEntry
    | SettledEntry
)

ENTRY_CLASSES: dict[str, type[Entry]] = {str(c.__struct_config__.tag): c for c in Entry.__args__}
PAYLOAD_CLASSES: dict[str, type[msgspec.Struct]] = {
    name: msgspec.structs.fields(c)[-1].type for name, c in ENTRY_CLASSES.items()
}
STIMULUS_KINDS = ("text", "audio", "visual", "field")
STIMULUS_PREFIX = "cognet:stimulus:"
OUTPUT_PREFIX = "cognet:output:"

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Entry)
_page_decoder = msgspec.json.Decoder(list[Entry])


def encode_body(entry: Entry) -> bytes:
    """The bytes of a row: the entry as JSON; its ``seq`` must still be 0, which leaves it out."""
    return _encoder.encode(entry)


def decode(body: bytes, seq: int) -> Entry:
    """The entry of a row; ``seq`` 0 for a transient one. Raises ``msgspec.ValidationError``."""
    entry = _decoder.decode(body)
    msgspec.structs.force_setattr(entry.time, "seq", seq)  # nobody has seen this object yet
    return entry


def decode_page(page: bytes, first_seq: int) -> list[Entry]:
    """The entries of a JSON array of bodies whose ``seq`` are consecutive from ``first_seq``."""
    entries = _page_decoder.decode(page)
    set_seq = msgspec.structs.force_setattr
    for seq, entry in enumerate(entries, first_seq):
        set_seq(entry.time, "seq", seq)
    return entries


def to_json(entry: Entry) -> dict[str, Any]:
    """The entry as plain values, ``seq`` included, as observers see it."""
    value: dict[str, Any] = msgspec.to_builtins(entry)
    value["time"]["seq"] = entry.time.seq
    return value
