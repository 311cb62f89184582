"""Admission: from a payload to a row with its place in the order, in memory and before anything is written."""

from __future__ import annotations

import msgspec

from runtime.abi.clock import mono_us, wall_ms
from runtime.abi.entries import ENTRY_CLASSES, PAYLOAD_CLASSES, EntryContext, EntryTime, decode, encode_body
from runtime.abi.errors import EntryInvalid, EntryTooLarge, EntryTypeUnknown
from runtime.abi.ids import uuid7
from runtime.abi.link import Row
from runtime.log import chain
from runtime.log.settings import MAX_BODY_BYTES


class Admission:
    """Gives out ``seq``. All that can fail (validation, encoding, size) comes before, so that no number is lost."""

    def __init__(self, context: EntryContext, *, last_seq: int, last_chain: bytes) -> None:
        self.context = context
        self.last_seq = last_seq
        self.last_chain = last_chain

    def body(self, type_: str, data: object, *, wake_id: str | None = None, cursor: int | None = None) -> bytes:
        """The bytes of a new entry. Raises ``EntryTypeUnknown``, ``EntryInvalid``, ``EntryTooLarge``."""
        payload = validated(type_, data)
        context = self.context
        if wake_id is not None or cursor is not None:
            context = EntryContext(
                agent_id=context.agent_id,
                session_id=context.session_id,
                boot_id=context.boot_id,
                wake_id=wake_id,
                cursor=cursor,
            )
        time = EntryTime(ms=wall_ms(), mono_us=mono_us())
        body = encoded(type_, ENTRY_CLASSES[type_](id=uuid7(), time=time, context=context, data=payload))  # type: ignore[arg-type]  # the table pairs them
        if type(data) is PAYLOAD_CLASSES[type_]:
            readable(type_, body)
        if len(body) > MAX_BODY_BYTES:
            raise EntryTooLarge(
                f"an entry of {len(body)} bytes exceeds {MAX_BODY_BYTES}", type=type_, size_bytes=len(body)
            )
        return body

    def place(self, type_: str, body: bytes) -> tuple[Row, bytes]:
        """Give the body the next ``seq``; returns the row and its chain."""
        seq = self.last_seq + 1
        link = chain.extend(self.last_chain, seq=seq, body=body)
        self.last_seq, self.last_chain = seq, link
        return Row(seq, type_, body), link


def validated(type_: str, data: object) -> msgspec.Struct:
    """The payload as its struct; one of the right class is checked by reading its body back."""
    kind = PAYLOAD_CLASSES.get(type_)
    if kind is None:
        raise EntryTypeUnknown(f"there is no entry type {type_!r}", type=type_)
    if type(data) is kind:
        return data
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise EntryInvalid(f"{type_}: {error}", hint=_fields(type_, kind), type=type_) from error


def _fields(type_: str, kind: type[msgspec.Struct]) -> str:
    """What belongs into an entry of this type, in words."""
    names = [f"{one.encode_name}{'' if one.required else ' (optional)'}" for one in msgspec.structs.fields(kind)]
    return f"The fields of {type_}: {', '.join(names)}; docs/event-log.md says what each holds."


def readable(type_: str, body: bytes) -> None:
    """A struct made in code was never checked against its bounds; what the log takes it must be able to read."""
    try:
        decode(body, 0)
    except (msgspec.MsgspecError, ValueError) as error:
        raise EntryInvalid(f"{type_}: {error}", type=type_) from error


def encoded(type_: str, entry: object) -> bytes:
    """Free-form parts (an action's value) may hold what JSON can't say; that is the caller's error, not the log's."""
    try:
        return encode_body(entry)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EntryInvalid(f"{type_}: {error}", type=type_) from error
