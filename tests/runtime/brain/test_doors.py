"""The two doors of persistence: what they have, and what they will never have."""

from __future__ import annotations

import msgspec
import pytest

from runtime.abi.entries import ENTRY_CLASSES
from runtime.abi.knowledge import KnowledgeEntry
from runtime.brain.verbs import Knowledge, SessionLog, Store

TRY = """
    import builtins
    @on("boot")
    async def first():
        {body}
    @loop
    async def think(wake): wake.stop()
"""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_there_is_no_verb_that_writes_to_the_session():
    assert public(SessionLog) == {"get"}


def test_the_store_has_a_history_to_read_and_two_verbs():
    assert public(Store) == {"session", "get", "set"}


def test_knowledge_has_four_verbs_and_no_search():
    assert public(Knowledge) == {"list", "read", "write", "remove"}


async def test_an_entry_of_the_history_cannot_be_changed(kernel_of, lines):
    body = """
        (entry,) = kernel.store.session.get()
        for change in (lambda: setattr(entry, "id", "x"), lambda: setattr(entry.data, "content", "forged")):
            try:
                change()
            except AttributeError:
                builtins.seen.append("refused")
"""
    kernel = kernel_of(TRY.format(body=body.strip()))
    kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "a"}, "content": "true"})
    await kernel.start()
    assert lines == ["refused", "refused"]


async def test_history_is_read_without_waiting_and_holds_entries_alone(kernel_of, lines):
    body = """
        kernel.emit("cognet:log:info", {"message": "x"})
        with phase("a"):
            await kernel.output("cognet:output:text", {"channel": "a", "content": "x"})
        await kernel.knowledge.write("a", "b")
        entries = kernel.store.session.get()
        assert not hasattr(entries, "__await__")
        builtins.seen.extend(entry.type for entry in entries)
"""
    kernel = kernel_of(TRY.format(body=body.strip()))
    await kernel.start()
    assert lines == ["cognet:output:text"]
    assert set(lines) <= set(ENTRY_CLASSES)
    await kernel.until(lambda: [event for event in kernel.told if event.type == "cognet:log:info"])


FOLD = """
    import builtins
    seq = 0
    def fold():
        global seq
        for entry in kernel.store.session.get(after=seq):
            builtins.seen.append(entry.data.content)
            seq = entry.time.seq
    @on("boot")
    async def first():
        fold()
        fold()
        await kernel.output("cognet:output:text", {"channel": "a", "content": "new"})
        fold()
    @loop
    async def think(wake): wake.stop()
"""


async def test_a_fold_never_reads_again_what_it_has_folded(kernel_of, lines):
    kernel = kernel_of(FOLD)
    for content in ("one", "two"):
        kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "a"}, "content": content})
    await kernel.start()
    assert lines == ["one", "two", "new"]


async def test_a_catalogue_is_of_frozen_entries_in_a_sequence_that_cannot_be_changed(kernel_of, lines):
    body = """
        await kernel.knowledge.write("b", "x")
        await kernel.knowledge.write("a", "x")
        found = await kernel.knowledge.list()
        builtins.seen.append(found)
"""
    kernel = kernel_of(TRY.format(body=body.strip()))
    await kernel.start()
    (found,) = lines
    assert isinstance(found, tuple)
    assert [entry.name for entry in found] == ["a", "b"]
    assert all(isinstance(entry, KnowledgeEntry) for entry in found)
    with pytest.raises(AttributeError):
        found[0].name = "x"
    assert set(msgspec.to_builtins(found[0])) == {"name", "description", "size", "path"}


async def test_match_and_limit_are_what_the_caller_gives(kernel_of):
    body = """
        await kernel.knowledge.list(match="deploy", limit=40)
        await kernel.knowledge.list()
"""
    kernel = kernel_of(TRY.format(body=body.strip()))
    await kernel.start()
    asked = [call.args for call in kernel.messages if type(call).__name__ == "Call" and call.verb == "knowledge.list"]
    assert asked == [["deploy", 40], ["", None]]


async def test_a_cognet_that_declares_nothing_has_no_store(kernel_of, lines):
    body = """
        for call in (lambda: kernel.store.get("checkpoint"), lambda: kernel.store.set("checkpoint", {})):
            try:
                await call()
            except errors.StoreKeyUndeclared:
                builtins.seen.append("undeclared")
"""
    kernel = kernel_of(TRY.format(body=body.strip()), store={})
    await kernel.start()
    assert lines == ["undeclared", "undeclared"]


async def test_the_identity_is_text_even_where_there_is_none(kernel_of, lines):
    kernel = kernel_of(TRY.format(body="builtins.seen.append(await kernel.base())"))
    await kernel.start()
    assert lines == [""]
