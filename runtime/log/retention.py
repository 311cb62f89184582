"""Which segments go: whole ones, oldest first, decided from figures alone."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from runtime.abi.clock import wall_ms
from runtime.abi.entries import EntryContext, EntryTime, SystemMessageEntry, encode_body
from runtime.abi.payloads import SystemMessage
from runtime.log.catalog import Catalog, Gap, Sealed


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What history may take; 0 means no such bound."""

    bytes: int = 0  # of all segments
    age_s: float = 0  # of running time since an entry was sealed
    min_free_bytes: int = 0  # of the disk


def due(segments: list[Sealed], bounds: Bounds, *, free_bytes: int, aged_s: float) -> int:
    """How many of the oldest segments have to go."""
    count, held = 0, sum(each.size_bytes for each in segments)
    for each in segments:
        too_many = bounds.bytes and held > bounds.bytes
        too_old = bounds.age_s and aged_s - each.aged_s > bounds.age_s
        too_full = bounds.min_free_bytes and free_bytes < bounds.min_free_bytes
        if not (too_many or too_old or too_full):
            break
        count, held, free_bytes = count + 1, held - each.size_bytes, free_bytes + each.size_bytes
    return count


def retired(catalog: Catalog, count: int, *, context: EntryContext) -> Gap:
    """The note of all that is gone once the oldest ``count`` segments are, damaged ones among them included."""
    last = catalog.segments[count - 1]
    types = merged([each.types for each in catalog.pieces if each.last <= last.last])
    text = f"Entries 1 to {last.last} were removed to keep within the bounds of [log]."
    body = told(context, "retention", text, first=1, last=last.last, chain=last.chain)
    return Gap("retention", 1, last.last, last.chain, types, body)


def merged(types: list[dict[str, int]]) -> dict[str, int]:
    """The last entry of each type over several pieces."""
    found: dict[str, int] = {}
    for each in types:
        for name, seq in each.items():
            found[name] = max(seq, found.get(name, 0))
    return found


def told(context: EntryContext, kind: str, text: str, *, first: int, last: int, chain: bytes, **facts: Any) -> bytes:
    """The body of the entry that stands for entries that aren't there; its id follows from the chain."""
    digest = hashlib.sha256(kind.encode() + chain).hexdigest()
    name = f"{digest[:8]}-{digest[8:12]}-7{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    data = SystemMessage(
        type=kind, text=text, facts={"first_seq": first, "last_seq": last, "chain": chain.hex(), **facts}
    )
    time = EntryTime(ms=wall_ms(), mono_us=0)
    return encode_body(SystemMessageEntry(id=name, time=time, context=context, data=data))
