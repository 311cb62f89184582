"""Frames come out as they went in, however the stream is cut; what is no frame is refused."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.errors import FrameInvalid
from capsule.frames import LENGTH, MAX_FRAME_BYTES, FrameSplitter, frame, receive_frame
from capsule.streams import read_frame

PAYLOADS = st.lists(st.binary(max_size=300), max_size=12)


def pieces_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


@given(payloads=PAYLOADS, cuts=st.lists(st.integers(min_value=0), max_size=20))
def test_any_split_of_the_stream_gives_the_same_frames(payloads: list[bytes], cuts: list[int]) -> None:
    splitter = FrameSplitter()
    stream = b"".join(map(frame, payloads))
    assert [found for piece in pieces_of(stream, cuts) for found in splitter.feed(piece)] == payloads


@given(payloads=PAYLOADS, size=st.integers(min_value=65, max_value=2**32 - 1))
def test_frames_before_an_oversize_one_are_delivered(payloads: list[bytes], size: int) -> None:
    payloads = [payload[:64] for payload in payloads]
    delivered = FrameSplitter(64).feed(b"".join(map(frame, payloads)) + LENGTH.pack(size))
    found = [next(delivered) for _ in payloads]
    with pytest.raises(FrameInvalid) as refused:
        next(delivered)
    assert found == payloads
    assert refused.value.facts == {"size_bytes": size}


@given(payload=st.binary(min_size=1, max_size=100), kept=st.integers(min_value=0))
def test_a_truncated_frame_is_never_delivered(payload: bytes, kept: int) -> None:
    whole = frame(payload)
    assert list(FrameSplitter().feed(whole[: kept % len(whole)])) == []


def test_a_splitter_left_in_the_middle_of_a_piece_goes_on_after_it() -> None:
    splitter = FrameSplitter()
    assert next(splitter.feed(frame(b"one") + frame(b"two"))) == b"one"
    assert list(splitter.feed(frame(b"three"))) == [b"two", b"three"]


def test_a_payload_too_long_to_send_is_refused() -> None:
    assert len(frame(bytes(MAX_FRAME_BYTES))) == MAX_FRAME_BYTES + LENGTH.size
    with pytest.raises(FrameInvalid):
        frame(bytes(MAX_FRAME_BYTES + 1))


async def read_all(stream: bytes, max_bytes: int = MAX_FRAME_BYTES) -> list[bytes]:
    reader = asyncio.StreamReader()
    reader.feed_data(stream)
    reader.feed_eof()
    found = []
    while (payload := await read_frame(reader, max_bytes)) is not None:
        found.append(payload)
    return found


def receive_all(stream: bytes, max_bytes: int = MAX_FRAME_BYTES) -> list[bytes]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(20)
        ours.sendall(stream)
        ours.shutdown(socket.SHUT_WR)
        return list(iter(lambda: receive_frame(theirs, max_bytes), None))


@given(payloads=PAYLOADS)
def test_the_stream_reader_and_the_socket_give_what_the_splitter_gives(payloads: list[bytes]) -> None:
    stream = b"".join(map(frame, payloads))
    assert asyncio.run(read_all(stream)) == payloads
    assert receive_all(stream) == payloads


@pytest.mark.parametrize("kept", [1, 3, 4, 6])
def test_a_connection_that_ends_inside_a_frame_is_an_error(kept: int) -> None:
    cut = frame(b"whole") + frame(b"cut")[:kept]
    with pytest.raises(FrameInvalid, match="ended inside a frame"):
        asyncio.run(read_all(cut))
    with pytest.raises(FrameInvalid, match="ended inside a frame"):
        receive_all(cut)


def test_an_oversize_length_is_refused_before_a_byte_of_it_is_read() -> None:
    with pytest.raises(FrameInvalid, match="exceeds 8"):
        asyncio.run(read_all(LENGTH.pack(9), 8))
    with pytest.raises(FrameInvalid, match="exceeds 8"):
        receive_all(LENGTH.pack(9), 8)


def test_a_large_frame_crosses_a_socket_in_many_pieces() -> None:
    payload = bytes(range(256)) * 8192
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(20)
        ours.setblocking(False)
        left = memoryview(frame(payload))
        splitter = FrameSplitter()
        found: list[bytes] = []
        while not found:
            left = left[ours.send(left) :] if left else left
            found += splitter.feed(theirs.recv(65536))
    assert found == [payload]
