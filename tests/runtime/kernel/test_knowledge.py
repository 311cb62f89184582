"""Knowledge behind the verbs: after what it stands on, in order, traced; and the whole of it in a real agent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axon.client import Control
from runtime.abi.entries import decode
from runtime.abi.errors import CallInvalid, KnowledgeEscape, KnowledgeTooLarge, LogBacklogFull, StorageFailed
from runtime.abi.knowledge import MAX_ENTRY_BYTES, KnowledgeEntry
from runtime.abi.link import Call
from runtime.abi.telemetry import TELEMETRY_CLASSES
from runtime.durable.files import BEGUN
from runtime.kernel import knowledge as module
from runtime.kernel.knowledge import KnowledgeVerbs
from runtime.knowledge.knowledge import Knowledge
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

from .conftest import LIMIT_S, Agent, until

MakeAgent = Callable[..., Agent]


class World:
    """A real log, a real store, and what was told and said."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.store = folder / "knowledge"
        (folder / "session").mkdir(parents=True)
        self.told: list[tuple[str, Any]] = []
        self.said: list[str] = []
        self.log = Log.open(
            folder / "session",
            agent_id="rover",
            session_id="session",
            boot_id="boot",
            settings=LogSettings(volatile_data=True, **settings),
            media=MemoryRing(max_bytes=1_000_000),
        )
        self.log.start(asyncio.get_running_loop())
        self.part = KnowledgeVerbs(Knowledge(folder), log=self.log, narrator=self, say=self.said.append)  # type: ignore[arg-type]  # the one method that it calls

    def tell(self, type_: str, data: msgspec.Struct, wake_id: str | None = None) -> None:
        assert isinstance(data, TELEMETRY_CLASSES[type_])
        self.told.append((type_, msgspec.to_builtins(data)))

    async def call(self, verb: str, *args: Any) -> Any:
        value = await self.part.verbs[f"knowledge.{verb}"](Call(1, f"knowledge.{verb}", list(args)), lambda _: None)
        return msgspec.msgpack.decode(value) if isinstance(value, msgspec.Raw) else value

    async def end(self) -> None:
        await self.part.close()
        await self.log.close(clean=True)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "robot")
    yield made
    await made.end()


async def test_the_four_verbs(world):
    await world.call("write", "notes/a.md", "---\ndescription: A\n---\n\u00e9")
    (entry,) = await world.call("list", "", None)
    assert msgspec.convert(entry, KnowledgeEntry).description == "A"
    assert await world.call("read", "notes/a.md") == "---\ndescription: A\n---\n\u00e9"
    await world.call("remove", "notes/a.md")
    await world.call("remove", "notes/a.md")
    assert await world.call("list", "", 5) == []


async def test_a_change_is_traced_by_name_only_and_nothing_is_when_nothing_changed(world):
    await world.call("write", "a", "the content")
    await world.call("remove", "a")
    await world.call("remove", "a")
    for refused in (("write", "../a", "x"), ("write", ".a", "x"), ("remove", "/a")):
        with pytest.raises(KnowledgeEscape):
            await world.call(*refused)
    assert world.told == [("cognet:knowledge:write", {"name": "a"}), ("cognet:knowledge:remove", {"name": "a"})]


async def test_a_persons_change_is_traced_with_the_person(world):
    await world.part.requests["knowledge_write"](name="a", content=b"\xff", by="ann")
    assert await world.part.requests["knowledge_remove"](name="a", by="ann") == {"removed": True}
    assert await world.part.requests["knowledge_remove"](name="a", by="ann") == {"removed": False}
    assert [data for _, data in world.told] == [{"name": "a", "by": "ann"}] * 2


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("list", []),
        ("list", ["", -1]),
        ("list", [None, None]),
        ("list", ["", "3"]),
        ("read", [1]),
        ("read", []),
        ("write", ["a"]),
        ("write", ["a", b"x"]),
        ("write", [["a"], "x"]),
        ("remove", ["a", "b"]),
    ],
)
async def test_arguments_of_another_shape_are_refused(world, verb, args):
    with pytest.raises(CallInvalid):
        await world.call(verb, *args)
    assert not world.store.exists()


async def test_too_much_is_refused_before_it_waits(world, monkeypatch):
    with pytest.raises(KnowledgeTooLarge):
        await world.call("write", "a", "x" * (MAX_ENTRY_BYTES + 1))
    with pytest.raises(KnowledgeTooLarge):
        await world.call("write", "a", "\u00e9" * (MAX_ENTRY_BYTES // 2 + 1))
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 1_500_000)
    writes = [world.call("write", f"a{n}", "x" * 1_000_000) for n in range(2)]
    first, second = await asyncio.gather(*writes, return_exceptions=True)
    assert first is None
    assert isinstance(second, LogBacklogFull)
    await world.call("write", "b", "x" * 1_000_000)


async def test_a_catalogue_too_long_for_one_answer_says_so(world, monkeypatch):
    monkeypatch.setattr(module, "MAX_CATALOGUE_BYTES", 500)
    for n in range(20):
        await world.call("write", f"entry-{n}", "x")
    with pytest.raises(KnowledgeTooLarge, match="20 entries"):
        await world.call("list", "", None)
    assert len(await world.call("list", "", 2)) == 2


async def test_a_change_waits_for_the_entries_it_stands_on(tmp_path):
    world = World(tmp_path / "slow", sync_delay_ms=300)
    seq = world.log.admit("cognet:output:text", {"channel": "a", "content": "x"}).seq
    writing = asyncio.ensure_future(world.call("write", "a", "x"))
    while world.log.durable_seq < seq:
        assert not (world.store / "a").exists()
        await asyncio.sleep(0.01)
    await writing
    assert (world.store / "a").exists()
    await world.end()


async def test_nothing_is_changed_when_the_log_has_failed(world, monkeypatch):
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_exception(StorageFailed("on purpose"))
    monkeypatch.setattr(world.log, "durable", lambda _: future)
    with pytest.raises(StorageFailed):
        await world.call("write", "a", "x")
    assert not world.store.exists()
    assert world.told == []


async def test_changes_keep_the_order_of_their_calls(world):
    for n in range(30):
        world.log.admit("cognet:output:text", {"channel": "a", "content": str(n)})
    calls = [world.call("write", f"{n % 3}", str(n)) if n % 4 else world.call("remove", f"{n % 3}") for n in range(120)]
    await asyncio.gather(*calls)
    kept = {entry["name"]: await world.call("read", entry["name"]) for entry in await world.call("list", "", None)}
    wanted: dict[str, str] = {}
    for n in range(120):
        wanted.pop(str(n % 3), None)
        if n % 4:
            wanted[str(n % 3)] = str(n)
    assert kept == wanted


async def test_one_that_was_begun_is_finished_and_traced_though_nobody_waits(world, monkeypatch):
    begun, go = threading.Event(), threading.Event()
    real = Knowledge.write

    def slow(self: Knowledge, name: str, data: bytes) -> None:
        begun.set()
        go.wait(LIMIT_S)
        real(self, name, data)

    monkeypatch.setattr(Knowledge, "write", slow)
    writing = asyncio.ensure_future(world.call("write", "a", "x"))
    await asyncio.to_thread(begun.wait, LIMIT_S)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go.set()
    async with asyncio.timeout(LIMIT_S):
        while not world.told:  # noqa: ASYNC110 - what is told goes to a list
            await asyncio.sleep(0.01)
    assert (world.store / "a").read_text() == "x"


async def test_a_long_look_at_the_catalogue_keeps_no_write_waiting(world, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(Knowledge, "catalogue", lambda _: (go.wait(LIMIT_S), [])[1])
    listing = asyncio.ensure_future(world.call("list", "", None))
    async with asyncio.timeout(LIMIT_S):
        await world.call("write", "a", "x")
    go.set()
    assert await listing == []


async def test_a_look_is_used_again_for_a_while_but_never_after_a_change(world, monkeypatch):
    looks: list[int] = []
    real = Knowledge.catalogue

    def counted(self: Knowledge) -> list[KnowledgeEntry]:
        looks.append(1)
        return real(self)

    now = [0]
    monkeypatch.setattr(Knowledge, "catalogue", counted)
    monkeypatch.setattr(module, "mono_us", lambda: now.__setitem__(0, now[0] + 1000) or now[0])  # each look takes 1 ms
    await world.call("write", "a", "x")
    for _ in range(5):
        assert len(await world.call("list", "", None)) == 1
    assert len(looks) == 1
    assert await world.call("list", "nothing", None) == []
    await world.call("write", "b", "x")
    assert len(await world.call("list", "", None)) == 2
    now[0] += 10_000
    await world.call("list", "", 1)
    assert len(looks) == 3


async def test_leftovers_are_swept_at_the_start(world):
    (world.store / "notes").mkdir(parents=True)
    (world.store / "notes" / f"{BEGUN}0.tmp").write_text("half")
    world.part.start()
    await world.call("write", "a", "x")  # the same thread: after the sweep
    assert [path.name for path in world.store.rglob("*") if path.is_file()] == ["a"]
    assert world.said == []


# -- in a real agent


def asked(agent: Agent, verb: str, *args: Any, **kw: Any) -> Any:
    """What the cognet says came of a verb."""
    before = len(answers(agent))
    agent.ask("say", text=json.dumps({"verb": verb, "args": args, "kw": kw}))
    return until(lambda: answers(agent)[before:], f"{verb} is answered")[0]


def answers(agent: Agent) -> list[dict[str, Any]]:
    rows = LogReader(agent.session).rows(types=["cognet:output:text"])
    return [json.loads(decode(row.body, row.seq).data.content) for row in rows]  # type: ignore[union-attr]


def told(agent: Agent, prefix: str) -> list[tuple[str, Any]]:
    return [(e.type, e.data) for e in LogReader(agent.session).telemetry() if e.type.startswith(prefix)]


@pytest.fixture
def scholar(make_agent: MakeAgent) -> Agent:
    agent = make_agent("scholar", sensors=False)
    (agent.folder / "boot.md").write_text("I am {{ agent }} of {{ cognet }}.\n")
    for name, text in {
        "knowledge/notes/dock.md": "---\ndescription: How to dock\n---\nSlowly.",
        "modules/arm/knowledge/joints.md": "Six.",
        "modules/arm/secret.py": "KEY = 1",
        "modules/other.py": "",
    }.items():
        path = agent.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    agent.launch()
    until(lambda: ready(agent), "the brain is up")
    return agent


def ready(agent: Agent) -> bool:
    from runtime.abi.errors import AgentNotRunning

    assert agent.process
    assert agent.process.poll() is None, agent.words()
    try:
        return bool(agent.summary()["brain"] == "up")
    except AgentNotRunning:
        return False


def test_a_brain_in_its_sandbox_lists_reads_writes_and_opens_by_path(scholar):
    agent = scholar
    assert agent.summary()["sandboxed"]
    assert asked(agent, "boot")["value"] == ["I am test of cognet.\n", ["arm/joints.md", "notes/dock.md"]]
    found = asked(agent, "list")["value"]
    assert [entry["name"] for entry in found] == ["arm/joints.md", "notes/dock.md"]
    assert found[1]["description"] == "How to dock"
    for entry in found:
        content, refused = asked(agent, "look", entry["path"])["value"]
        assert content == asked(agent, "read", entry["name"])["value"]
        assert len(refused) == 4
    assert asked(agent, "write", "notes/new.md", "learned") == {"value": None}
    assert asked(agent, "list", match="NEW")["value"][0]["name"] == "notes/new.md"
    assert asked(agent, "look", str(agent.folder / "knowledge/notes/new.md"))["value"][0] == "learned"
    assert asked(agent, "write", "arm/joints.md", "seven")["error"] == "KNOWLEDGE_ESCAPE"
    assert asked(agent, "write", "../boot.md", "me")["error"] == "KNOWLEDGE_ESCAPE"
    assert asked(agent, "read", "notes/none.md")["error"] == "KNOWLEDGE_NOT_FOUND"
    assert asked(agent, "remove", "notes/new.md") == {"value": None}
    assert asked(agent, "remove", "notes/new.md") == {"value": None}
    assert asked(agent, "flood", 100) == {"value": None}
    assert [asked(agent, "read", f"flood/{n}")["value"] for n in range(7)] == [
        str(98 + n - 7 * (n > 1)) for n in range(7)
    ]
    agent.stop()
    trace = told(agent, "cognet:knowledge:")
    assert trace[:2] == [
        ("cognet:knowledge:write", {"name": "notes/new.md"}),
        ("cognet:knowledge:remove", {"name": "notes/new.md"}),
    ]
    assert len(trace) == 102
    assert b"learned" not in b"".join(
        row.body for row in agent.rows() if "output" not in row.type and "stimulus" not in row.type
    )


def test_knowledge_outlives_the_session_and_is_published_while_the_store_is_the_cognets_own(scholar):
    agent = scholar
    assert asked(agent, "write", "notes/kept.md", "kept") == {"value": None}
    assert asked(agent, "set", "n", 7) == {"value": None}
    assert (agent.folder / "data/state/cognet/n.json").is_file()
    assert (agent.folder / "knowledge/notes/kept.md").read_text() == "kept"  # what isn't published is in data/ alone
    agent.stop()
    agent.launch(session="new")
    until(lambda: ready(agent), "the brain is up again")
    assert asked(agent, "seen", "cognet:action:python") == {"value": []}
    assert asked(agent, "read", "notes/kept.md") == {"value": "kept"}
    (agent.folder / "knowledge/notes/kept.md").write_text("a person's")
    assert asked(agent, "read", "notes/kept.md") == {"value": "a person's"}
    agent.stop()


def test_a_path_of_the_catalogue_opens_in_a_block_and_nothing_can_be_written_there(scholar):
    agent = scholar
    for entry in asked(agent, "list")["value"]:
        block = f"""
path = {entry["path"]!r}
try:
    open(path, "a")
    refused = False
except OSError:
    refused = True
[open(path).read(), refused]"""
        with Control(agent.folder) as control:
            result = control.wait_for("exec", code=block)
        assert result["ok"], result
        assert result["value"] == [asked(agent, "read", entry["name"])["value"], True]
    agent.stop()


def test_a_brain_cannot_forge_the_trace(scholar):
    agent = scholar
    event = {"type": "cognet:knowledge:write", "mono_us": 1, "data": {"name": "forged"}}
    agent.ask("say", text=json.dumps({"verb": "forge", "args": [["Told", [event]]]}))
    until(lambda: agent.restarts("brain"), "the brain that forged is ended")
    agent.stop()
    assert told(agent, "cognet:knowledge:") == []
    assert told(agent, "kernel:link:refused")
