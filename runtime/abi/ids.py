"""Identifiers: UUIDv7 (RFC 9562), time-ordered for people, random enough to be unique without a server."""

from __future__ import annotations

import os
import random

from runtime.abi.clock import wall_ms

_random = random.Random(int.from_bytes(os.urandom(32), "big"))
os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))


_VERSION = (0x7000 << 64) | (0x8000 << 48)
_FREE_BITS = (0x0FFF << 64) | ((1 << 62) - 1)


def uuid7() -> str:
    """A new UUIDv7 in its usual text form; unique, not secret."""
    bits = ((wall_ms() & 0xFFFFFFFFFFFF) << 80) | _VERSION | (_random.getrandbits(76) & _FREE_BITS)
    text = bits.to_bytes(16, "big").hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
