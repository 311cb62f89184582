"""Identifiers: UUIDv7 (RFC 9562), time-ordered for people, random enough to be unique without a server."""

from __future__ import annotations

import os
import random

from runtime.abi.clock import wall_ms

_random = random.Random(int.from_bytes(os.urandom(32), "big"))
os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))


def uuid7() -> str:
    """A new UUIDv7 in its usual text form; unique, not secret."""
    bits = _random.getrandbits(74)
    ms = wall_ms() & 0xFFFFFFFFFFFF
    return (
        f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7{bits & 0xFFF:03x}-{0x8000 | (bits >> 12) & 0x3FFF:04x}-{bits >> 26:012x}"
    )
