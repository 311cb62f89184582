"""Messages of a guest: what an honest one says arrives as it was said; nothing else costs more than its bytes."""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsule.errors import FrameInvalid
from capsule.guest.plain import NotPlain, plain
from capsule.protocol import MAX_FROM_GUEST, Asked, Ready, Settled, Started, ToolCall
from capsule.result import Absent, BlockError, CapsuleScope, RunResult
from runtime.kernel.capsule.message import CAREFUL_BYTES, MAX_LINES, MAX_PARTS, MAX_PLAIN_BYTES, decoded

encode = msgspec.msgpack.encode
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
)
RESULTS = st.builds(
    RunResult,
    ok=st.booleans(),
    value=PLAIN,
    stdout=st.lists(TEXT, max_size=5),
    scope=st.builds(
        CapsuleScope,
        values=st.dictionaries(TEXT, PLAIN, max_size=5),
        unavailable=st.lists(st.builds(Absent, TEXT, st.sampled_from(["function", "oversized"])), max_size=5),
    ),
    error=st.none() | st.builds(BlockError, kind=st.just("exception"), message=TEXT),
    value_error=st.none() | TEXT,
    cut=st.none() | TEXT,
)
CALLS = st.builds(
    ToolCall,
    block=TEXT,
    module=TEXT,
    member=TEXT,
    args=st.lists(PLAIN, max_size=5),
    kwargs=st.dictionaries(TEXT, PLAIN, max_size=5),
)
MESSAGES = (
    st.just(Ready())
    | st.builds(Started, block=TEXT)
    | st.builds(Settled, block=TEXT, result=RESULTS)
    | st.builds(Asked, call=st.integers(0, 2**53), tool=CALLS)
)


@settings(deadline=None)  # strategies are built in the first example
@given(MESSAGES)
def test_what_is_said_arrives(message: Any) -> None:
    assert decoded(encode(message)) == message


@settings(deadline=None)  # the same
@given(MESSAGES.map(encode), st.integers(min_value=0), st.integers(0, 255))
def test_bytes_that_are_changed_are_a_message_or_refused(data: bytes, place: int, byte: int) -> None:
    changed = bytearray(data)
    changed[place % len(data)] = byte
    with contextlib.suppress(FrameInvalid, msgspec.MsgspecError, UnicodeDecodeError):
        assert isinstance(decoded(bytes(changed)), Ready | Started | Settled | Asked)


def settled(value: bytes) -> bytes:
    """A result whose value is these bytes."""
    return encode(["Settled", "b", {"ok": True, "value": msgspec.Raw(value)}])


def many(what: bytes, count: int) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + what * count


def value_of(data: bytes) -> Any:
    message = decoded(settled(data))
    assert isinstance(message, Settled)
    return message.result.value


@pytest.mark.parametrize("what", [b"\x90", b"\x80", b"\xc0", b"\x01"], ids=["lists", "dictionaries", "nothing", "ones"])
def test_a_value_has_so_many_parts(what: bytes) -> None:
    assert len(value_of(many(what, MAX_PARTS))) == MAX_PARTS
    with pytest.raises(FrameInvalid, match="parts"):
        value_of(many(what, MAX_PARTS + 1))
    with pytest.raises(FrameInvalid, match="bytes"):
        value_of(many(what, MAX_PLAIN_BYTES))


def test_a_text_is_as_long_as_a_message() -> None:
    assert value_of(encode("x" * (MAX_FROM_GUEST - 100))) == "x" * (MAX_FROM_GUEST - 100)


def test_the_collector_works_afterwards() -> None:
    assert gc.isenabled()
    value_of(many(b"\x90", CAREFUL_BYTES + 1))
    with pytest.raises(FrameInvalid):
        value_of(many(b"\x90", MAX_PARTS + 1))
    assert gc.isenabled()


def test_lines_are_bounded_in_number() -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded(encode(["Settled", "b", {"ok": True, "stdout": [""] * (MAX_LINES + 1)}]))


LARGE = {
    "text": "x" * 200_000,
    "wide text": "\U0001f600" * 200_000,
    "texts": ["\U0001f600" * 9] * 5_000,
    "numbers": [2.5**-n for n in range(49_000)],
    "names": {str(n) + "\U0001f600": n for n in range(22_000)},
    "lists": [[[]]] * 16_000,
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE.keys())
def test_what_the_guest_lets_out_the_kernel_lets_in(value: Any) -> None:
    assert value_of(encode(plain(value))) == value


@settings(deadline=None, max_examples=30)  # large values take a while on a busy machine
@given(st.integers(0, 60_000), st.integers(0, 60), st.sampled_from("a\u00e9\u20ac\U0001f600"), st.booleans())
def test_the_guests_limits_are_within_the_kernels(count: int, length: int, letter: str, named: bool) -> None:
    """Whatever passes the one passes the other: an honest block never costs its incarnation."""
    each = letter * length
    value = {f"{n}{each}": 2.5 for n in range(count)} if named else [[each]] * count
    try:
        data = encode(plain(value))
    except NotPlain:
        return
    assert len(value_of(data)) == count
