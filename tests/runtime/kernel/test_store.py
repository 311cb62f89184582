"""A cognet's private store on a real log: a cache that is durable, checked, and always right to delete."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.errors import StorageFailed, StoreKeyUndeclared, StoreValueInvalid
from runtime.abi.link import Call
from runtime.config.store import store_type
from runtime.durable import files
from runtime.kernel.store import MAX_BYTES, Store
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

DECLARED = {
    "checkpoint": "dict",
    "n": "int",
    "mood": "float | None",
    "any": "any",
    "pair": "tuple[int, str]",
    "own-{session}": "int",
}
WAIT_S = 30.0


class World:
    """A log, and the store on it, as a kernel has them; ``again`` is the next start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state" / "test"
        self.log: Log | None = None

    def again(self, *, session: str = "one", declared: dict[str, str] | None = None, **settings: Any) -> Store:
        place = self.folder / session
        place.mkdir(exist_ok=True)
        self.log = Log.open(
            place,
            agent_id="rover",
            session_id=session,
            boot_id="boot",
            settings=LogSettings(volatile_data=True, **settings),
            media=MemoryRing(max_bytes=1_000_000),
        )
        self.log.start(asyncio.get_running_loop())
        types = {key: store_type(text) for key, text in (DECLARED if declared is None else declared).items()}
        self.store = Store(self.state, declared=types, session_id=session, log=self.log)
        return self.store

    def say(self, words: str) -> int:
        assert self.log
        return self.log.admit("cognet:output:text", {"channel": "a", "content": words}).seq

    async def end(self) -> None:
        if self.log:
            self.store.close()
            await self.log.close(clean=True)
            self.log = None


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    made.again()
    yield made
    await made.end()


async def restarted(world: World, **given: Any) -> Store:
    await world.end()
    return world.again(**given)


async def test_what_is_set_is_got_by_the_next_kernel_too(world):
    for key, value in {"checkpoint": {"seq": 1}, "n": 2**63 - 1, "mood": None, "any": ["x", 1.5, {"a": True}]}.items():
        await world.store.set(key, value)
        assert await world.store.get(key) == value
    store = await restarted(world)
    assert await store.get("n") == 2**63 - 1


async def test_null_when_absent(world):
    assert await world.store.get("checkpoint") is None


async def test_it_stands_on_an_empty_log_too(world):
    await world.store.set("n", 1)
    assert await world.store.get("n") == 1
    assert await (await restarted(world)).get("n") == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b'{"value": 1}',
        b"[" * 100_000,
        b'{"value": ' + b"[" * 100_000,
        b'{"value": 1, "session": "one", "seq": "x", "chain": ""}',
        b'{"value": {"a": 1180591620717411303424}, "session": "two", "seq": 1, "chain": ""}',
        b'{"value": "no dict", "session": "two", "seq": 1, "chain": ""}',
    ],
)
async def test_null_when_unreadable(world, content):
    await world.store.set("checkpoint", {"a": 1})
    (world.state / "checkpoint.json").write_bytes(content)
    assert await world.store.get("checkpoint") is None
    await world.store.set("checkpoint", {"a": 2})
    assert await world.store.get("checkpoint") == {"a": 2}


async def test_null_when_a_folder_is_in_its_place_and_setting_says_so(world):
    (world.state / "n.json").mkdir(parents=True)
    assert await world.store.get("n") is None
    with pytest.raises(StorageFailed):
        await world.store.set("n", 1)


async def test_a_file_in_the_place_of_the_folder_is_said(world):
    world.state.parent.write_text("a file")
    assert await world.store.get("n") is None
    with pytest.raises(StorageFailed, match="no folder"):
        await world.store.set("n", 1)


async def test_null_when_it_no_longer_matches_the_schema(world):
    await world.store.set("n", 3)
    store = await restarted(world, declared={"n": "str"})
    assert await store.get("n") is None


async def test_null_when_the_log_does_not_hold_what_it_stands_on(world):
    await world.log.durable(world.say("one"))
    await world.store.set("n", 1)
    await world.end()
    shutil.rmtree(world.folder / "one")  # another log under the same name: restored, salvaged, or begun again
    store = world.again()
    assert await store.get("n") is None
    await world.log.durable(world.say("as many entries, other ones"))
    assert await store.get("n") is None


async def test_null_when_it_is_ahead_of_the_log(world):
    await world.log.durable(world.say("one"))
    await world.store.set("n", 1)
    path = world.state / "n.json"
    kept = json.loads(path.read_bytes())
    path.write_text(json.dumps({**kept, "seq": kept["seq"] + 1}))
    assert await world.store.get("n") is None


async def test_a_key_of_the_session_is_the_sessions_own_and_others_are_shared(world):
    await world.store.set("own-{session}", 1)
    await world.store.set("n", 2)
    store = await restarted(world, session="two")
    assert await store.get("own-{session}") is None
    assert await store.get("n") == 2
    await store.set("own-{session}", 3)
    assert await (await restarted(world, session="one")).get("own-{session}") == 1


async def test_an_undeclared_key_is_an_error(world):
    for key in ("other", "", "../n", "n.json"):
        with pytest.raises(StoreKeyUndeclared):
            await world.store.get(key)
        with pytest.raises(StoreKeyUndeclared):
            await world.store.set(key, 1)
    assert not world.state.exists()


async def test_nothing_declared_is_no_store(world):
    store = await restarted(world, declared={})
    for call in (store.get("checkpoint"), store.set("checkpoint", {})):
        with pytest.raises(StoreKeyUndeclared, match="declared: none"):
            await call


DEEP: Any = []
for _ in range(2000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n", "x"),
        ("n", None),
        ("n", 1.5),
        ("pair", [1]),
        ("checkpoint", []),
        ("mood", float("nan")),
        ("any", {"a": [float("inf")]}),
        ("any", b"bytes"),
        ("any", {"a": {1: 2}}),
        ("any", {1, 2}),
        ("any", object()),
        ("any", 2**70),
        ("any", "\ud800"),
        ("any", "x" * (MAX_BYTES + 1)),
        ("any", DEEP),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, list) else "list",
)
async def test_a_value_that_would_not_come_back_as_it_is_is_refused_and_the_old_one_stands(world, key, value):
    before = {"n": 1, "pair": (1, "a"), "checkpoint": {"a": 1}, "mood": 0.5, "any": "old"}[key]
    await world.store.set(key, before)
    with pytest.raises(StoreValueInvalid):
        await world.store.set(key, value)
    assert await world.store.get(key) == before


async def test_the_last_call_of_a_key_stays_however_they_were_started(world):
    for number in range(20):
        world.say(str(number))
    await asyncio.gather(*(world.store.set("n", number) for number in range(60)))
    assert await world.store.get("n") == 59


async def test_concurrent_instances_share_it_and_the_last_write_wins_whole(world):
    """Two kernels of one agent's cognet: each key is one of the two values, never a mixture."""
    first = world.store
    other = Store(world.state, declared={"any": Any}, session_id="two", log=world.log)
    values = [{"who": who, "many": [who] * 5000} for who in ("first", "other")]
    for _ in range(20):
        await asyncio.gather(first.set("any", values[0]), other.set("any", values[1]))
        assert await first.get("any") == await other.get("any")
        assert await first.get("any") in values
    other.close()


async def test_it_resolves_after_the_entries_that_it_stands_on_are_durable(world):
    store = await restarted(world, sync_delay_ms=200)
    seq = world.say("acted upon")
    await store.set("n", 1)
    assert world.log.durable_seq >= seq
    assert json.loads((world.state / "n.json").read_bytes())["seq"] >= seq


async def test_a_failed_write_leaves_the_old_value(world, monkeypatch):
    await world.store.set("n", 1)

    def fail(*_: object) -> None:
        raise OSError(5, "on purpose")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StorageFailed, match="on purpose"):
        await world.store.set("n", 2)
    monkeypatch.undo()
    assert await world.store.get("n") == 1
    assert [path.name for path in world.state.iterdir()] == ["n.json"]


async def test_deleting_the_folder_is_always_safe(world):
    await world.store.set("n", 1)
    shutil.rmtree(world.state.parent)
    assert await world.store.get("n") is None
    await world.store.set("n", 2)
    assert await world.store.get("n") == 2


@pytest.mark.parametrize("step", ["mkstemp", "fsync", "replace", "sync_folder"])
async def test_deleting_it_in_the_middle_of_a_set_is_safe_too(world, monkeypatch, step):
    """At each step of the write the folder vanishes once; the set holds all the same."""
    gone: list[str] = []
    owner = {"mkstemp": files.tempfile, "fsync": os, "replace": os, "sync_folder": files}[step]
    real: Callable[..., Any] = getattr(owner, step)

    def pull_away(*args: Any, **kwargs: Any) -> Any:
        if not gone and world.state.is_dir():
            gone.append(step)
            shutil.rmtree(world.state.parent)
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, step, pull_away)
    await world.store.set("n", 1)
    assert gone == [step]
    assert await world.store.get("n") == 1


async def test_deleting_it_again_and_again_while_sets_are_in_flight(world):
    done = threading.Event()

    def delete() -> None:
        while not done.is_set():
            shutil.rmtree(world.state.parent, ignore_errors=True)
            done.wait(0.002)

    thread = threading.Thread(target=delete)
    thread.start()
    try:
        for number in range(20):
            await asyncio.gather(world.store.set("n", number), world.store.set("mood", 1.0))
            assert await world.store.get("n") in (None, number)
    finally:
        done.set()
        thread.join(WAIT_S)
    await world.store.set("n", 1)
    assert await world.store.get("n") == 1


async def test_arguments_of_another_shape_are_refused(world):
    from runtime.abi.errors import CallInvalid

    for verb, args in [("store.get", []), ("store.get", [1]), ("store.set", ["n"]), ("store.set", ["n", 1, 2])]:
        with pytest.raises(CallInvalid):
            await world.store.verbs[verb](Call(1, verb, args), lambda _: None)
