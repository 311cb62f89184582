"""Chunk groups, assembled the same for every reader."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.abi.chunks import ChunkFold, assemble
from runtime.abi.entries import Entry, EntryContext, EntryTime, InterruptEntry, TextOutputEntry
from runtime.abi.payloads import Chunk, Interrupt, TextOutput

CONTEXT = EntryContext(agent_id="a", session_id="s", boot_id="b")


def output(seq: int, content: str, of: str | None = None, *, final: bool = False, channel: str = "say") -> Entry:
    chunk = None if of is None else Chunk(of=of, final=final)
    data = TextOutput(channel=channel, content=content, chunk=chunk)
    return TextOutputEntry(id=f"id{seq}", time=EntryTime(ms=1, mono_us=1, seq=seq), context=CONTEXT, data=data)


def test_groups_close_with_their_final_chunk() -> None:
    entries = [output(1, "he", "a"), output(2, "x", "b"), output(3, "llo", "a", final=True), output(4, "alone")]
    found = assemble(entries)
    assert [(e.of, e.text, e.final) for e in found] == [("a", "hello", True), ("id4", "alone", True), ("b", "x", False)]


def test_a_group_belongs_to_its_channel() -> None:
    fold = ChunkFold()
    fold.feed(output(1, "x", "a", channel="one"))
    closed = fold.feed(output(2, "y", "a", final=True, channel="two"))
    assert closed is not None
    assert closed.text == "y"
    assert [e.channel for e in fold.truncated()] == ["one"]


def test_other_entries_are_passed_by() -> None:
    entry: Any = InterruptEntry(id="i", time=EntryTime(ms=1, mono_us=1), context=CONTEXT, data=Interrupt(by="x"))
    assert assemble([entry]) == []


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_no_output_is_lost_or_doubled(pieces: list[tuple[str, bool]]) -> None:
    entries = [output(seq, str(seq), of, final=final) for seq, (of, final) in enumerate(pieces, 1)]
    found = assemble(entries)
    assert sorted(e.seq for group in found for e in group.entries) == [e.seq for e in entries]
    assert all(group.entries[-1].data.chunk.final == group.final for group in found)
