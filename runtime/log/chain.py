"""The hash chain: each row carries a digest of everything before it, so damage is found and placed."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

from runtime.abi.errors import LogDamaged

GENESIS = bytes(32)
_new = hashlib.sha256().copy  # a copy of an empty state is twice as fast as a new one


def digest(data: bytes) -> bytes:
    """SHA-256."""
    state = _new()
    state.update(data)
    return state.digest()


def link(previous: bytes, *, seq: int, body_digest: bytes) -> bytes:
    """``SHA-256(previous chain || seq as 8 bytes, big-endian || SHA-256(body))``."""
    return digest(previous + seq.to_bytes(8, "big") + body_digest)


def extend(previous: bytes, *, seq: int, body: bytes) -> bytes:
    """``link`` for a body whose digest isn't at hand, in one call: every entry passes here."""
    state = _new()
    state.update(body)
    body_digest = state.digest()
    state = _new()
    state.update(previous + seq.to_bytes(8, "big") + body_digest)
    return state.digest()


def follow(previous: bytes, *, after: int, bodies: bytes, lengths: list[int]) -> bytes:
    """The last chain over entries whose bodies lie in one piece, a byte apart: a page at a time, so written out."""
    at, seq = 0, after
    for length in lengths:
        seq += 1
        state = _new()
        state.update(bodies[at : at + length])
        body_digest = state.digest()
        state = _new()
        state.update(previous + seq.to_bytes(8, "big") + body_digest)
        previous = state.digest()
        at += length + 1
    return previous


Raw: TypeAlias = tuple[int, bytes, bytes, bytes]
"""A row as bytes: seq, type, body, chain; read with ``COLUMNS``, since a damaged text may be no text at all."""
COLUMNS = "seq, CAST(type AS BLOB), body, chain"


def check(rows: list[Raw], *, after: int, previous: bytes) -> bytes:
    """Check rows ``(seq, type, body, chain)`` that must follow ``after`` without a hole; return the last chain.

    Raises ``LogDamaged`` naming the first ``seq`` that isn't what was written.
    """
    wanted = after
    for seq, type_, body, chain in rows:
        wanted += 1
        if seq != wanted:
            raise LogDamaged(f"entry {wanted} is missing", seq=wanted)
        if extend(previous, seq=seq, body=body) != chain:
            raise LogDamaged(f"entry {seq} isn't what was written", seq=seq)
        if not names_type(body, type_):
            raise LogDamaged(f"the type of entry {seq} isn't what was written", seq=seq)
        previous = chain
    return previous


def names_type(body: bytes, type_: bytes) -> bool:
    """Whether the column beside the body says what the body says."""
    return body.startswith(b'{"type":"%b"' % type_)
