"""Entries on their way to a brain: in order, each once, together or with a reply, and never above a frame's limit."""

import asyncio

import msgspec
import pytest

from capsule.frames import MAX_FRAME_BYTES, FrameSplitter
from runtime.abi.link import Entries, Row
from runtime.kernel.brain_stream import BrainStream


def row(seq: int, size: int = 2) -> Row:
    return Row(seq, "cognet:output:field", b"x" * size)


class Written:
    """What was written, and the stream that writes it."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.stream = BrainStream(self.pieces.append)

    @property
    def seqs(self) -> list[list[int]]:
        """Of each message, in order."""
        payloads = FrameSplitter().feed(b"".join(self.pieces))
        return [[r.seq for r in msgspec.msgpack.decode(payload, type=Entries).rows] for payload in payloads]


@pytest.fixture
async def written() -> Written:
    return Written()


async def test_what_is_admitted_in_a_turn_goes_out_together(written: Written) -> None:
    written.stream.add([row(1)], until="turn")
    written.stream.add([row(2)], until="turn")
    assert written.pieces == []
    await asyncio.sleep(0)
    assert written.seqs == [[1, 2]]


async def test_a_lone_row_that_may_wait_goes_with_the_reply(written: Written) -> None:
    written.stream.add([row(1)], until="reply")
    await asyncio.sleep(0)
    assert written.stream.take_lone() == [row(1)]
    assert written.stream.take_lone() == []
    assert written.pieces == []


async def test_a_row_whose_reply_follows_soon_goes_with_it_or_at_the_end_of_the_next_turn(written: Written) -> None:
    written.stream.add([row(1)], until="soon")
    await asyncio.sleep(0)
    assert written.stream.take_lone() == [row(1)]
    written.stream.add([row(2)], until="soon")
    for _ in range(3):
        await asyncio.sleep(0)
    assert written.seqs == [[2]]


async def test_a_second_row_takes_the_waiting_one_along_at_the_end_of_the_turn(written: Written) -> None:
    written.stream.add([row(1)], until="reply")
    await asyncio.sleep(0)
    written.stream.add([row(2)], until="reply")
    await asyncio.sleep(0)
    assert written.seqs == [[1, 2]]


async def test_of_several_rows_none_goes_with_the_reply_and_all_go_before_it(written: Written) -> None:
    written.stream.add([row(1)], until="reply")
    written.stream.add([row(2)], until="reply")
    assert written.stream.take_lone() == []
    assert written.seqs == [[1, 2]]
    await asyncio.sleep(0)
    assert written.seqs == [[1, 2]]


async def test_a_row_that_waits_in_vain_is_flushed(written: Written) -> None:
    written.stream.add([row(1)], until="reply")
    written.stream.flush()
    written.stream.flush()
    assert written.seqs == [[1]]
    assert len(written.pieces) == 1


async def test_long_rows_are_spread_over_messages_within_the_limit(written: Written) -> None:
    rows = [row(seq, 256 * 1024) for seq in range(1, 70)]
    written.stream.add(rows, until="turn")
    await asyncio.sleep(0)
    assert [seq for message in written.seqs for seq in message] == list(range(1, 70))
    assert all(len(payload) < MAX_FRAME_BYTES for payload in FrameSplitter().feed(written.pieces[0]))
