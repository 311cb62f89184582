"""The small durable things of an agent: the stop, the session's name, a cognet's store, the knowledge base."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw

from capsule.errors import AxonError
from crash.promise import Found, Promise
from crash.recording import Recording
from crash.tape import Tape
from crash.truth import Truth
from crash.workload import open_log
from runtime.abi.errors import KnowledgeNotFound
from runtime.durable.files import TEMPORARY, make_folder, remove_leftovers
from runtime.kernel.session import Session
from runtime.kernel.stop import StopLatch
from runtime.kernel.store import Store
from runtime.knowledge.knowledge import Knowledge
from runtime.knowledge.places import prepare
from runtime.log.log import Log

KEYS = {"counts": dict[str, int], "last {session}": str}
NAMES = ("plan", "home/kitchen", "home/cellar/boiler")
STATE = "data/state/cognet"


class Agent:
    """What a start opens in an agent's folder, without a brain."""

    def __init__(self, root: Path, *, asked: str | None = None) -> None:
        self.data = root / "data"
        prepare(root)
        self.session = Session.take(self.data, asked)
        for place in (self.data, root / STATE):
            remove_leftovers(place)
        self.latch = StopLatch.load(self.data)
        self.log: Log = open_log(self.session)
        self.store = Store(root / STATE, declared=KEYS, session_id=self.session.id, log=self.log)
        self.knowledge = Knowledge(root)
        self.knowledge.sweep()

    async def close(self, *, clean: bool) -> None:
        """End in order."""
        self.store.close()
        await self.log.close(clean=clean)
        self.session.release()

    async def values(self) -> dict[str, Any]:
        """All of it as this start finds it."""
        found: dict[str, Any] = {name: self._entry(name) for name in NAMES}
        for key in KEYS:
            found[key] = await self.store.get(key)
        state = self.latch.state
        return {**found, "session": self.session.id, "stop": (state.latched, state.by, state.count)}

    def _entry(self, name: str) -> bytes | None:
        try:
            return self.knowledge.read_bytes(name)
        except KnowledgeNotFound:
            return None


class Changes:
    """Changes one thing after the other, and notes on the tape what each may be meanwhile and afterwards."""

    def __init__(self, tape: Tape, rng: random.Random) -> None:
        self._tape = tape
        self._rng = rng
        self._values: dict[str, Any] = {}
        self._agent: Agent | None = None
        self._last = 0

    def starting(self) -> None:
        """The next start may begin a session of its own, with no entry in it."""
        self._last = self._agent.log.last_seq if self._agent else 0
        self._agent = None
        self._values = {name: value for name, value in self._values.items() if "session" not in name}
        self.note()

    async def started(self, agent: Agent) -> None:
        """What a start found is promised from then on."""
        self._agent = agent
        self._values = await agent.values()
        self.note()

    def note(self, **changing: Any) -> None:
        """What is promised now, and what some of it is to become."""
        values: dict[str, tuple[Any, ...]] = {name: (value,) for name, value in self._values.items()}
        for name, value in changing.items():
            values[name] = (self._values.get(name), value)
        last = self._agent.log.last_seq if self._agent else self._last
        durable = self._agent.log.durable_seq if self._agent else 0
        self._tape.note(Promise(acknowledged=durable, begun=last + 1, values=values))

    async def change(self, name: str, value: Any, do: Callable[[], Awaitable[Any] | Any]) -> None:
        """From the note that it may be either, to the one that it is the new."""
        self.note(**{name: value})
        done = do()
        if isinstance(done, Awaitable):
            await done
        self._values[name] = value
        self.note()

    async def some(self, agent: Agent, count: int) -> None:
        """So many changes of everything but the session."""
        for _ in range(count):
            await self._rng.choice((self._stop, self._store, self._store, self._knowledge, self._knowledge))(agent)

    async def _stop(self, agent: Agent) -> None:
        if agent.latch.latched:
            agent.latch.clear(by="ann")
        else:
            agent.latch.latch(by=f"sensor {self._rng.randrange(100)}")
        state = agent.latch.state
        await self.change("stop", (state.latched, state.by, state.count), agent.latch.save)

    async def _store(self, agent: Agent) -> None:
        agent.log.admit("cognet:stimulus:text", {"source": {"channel": "person"}, "content": "x"})
        key = self._rng.choice(list(KEYS))
        size = self._rng.choice((1, 50, 900))
        value: Any = {f"k{n}": self._rng.randrange(99) for n in range(size)} if key == "counts" else "y" * size * 9
        await self.change(key, value, lambda: agent.store.set(key, value))

    async def _knowledge(self, agent: Agent) -> None:
        name = self._rng.choice(NAMES)
        if self._values.get(name) is not None and self._rng.random() < 0.4:
            await self.change(name, None, lambda: agent.knowledge.remove(name))
            return
        content = self._rng.randbytes(self._rng.choice((1, 600, 9000))).hex().encode()
        await self.change(name, content, lambda: agent.knowledge.write(name, content))


def files(root: Path, rng: random.Random) -> Recording:
    """Two or three starts, some in a new session, each changing everything there is."""
    return asyncio.run(_record(root, rng))


async def _record(root: Path, rng: random.Random) -> Recording:
    tape, truth = Tape(root), Truth()
    changes = Changes(tape, rng)
    with tape.running():
        for start in range(rng.randint(2, 3)):
            changes.starting()
            make_folder(root / "data")
            agent = Agent(root, asked="new" if start and rng.random() < 0.5 else None)
            agent.log.start(asyncio.get_running_loop())
            await changes.started(agent)
            await changes.some(agent, rng.randint(5, 10))
            await agent.close(clean=rng.random() < 0.5)
        changes.starting()
    return Recording(operations=tape.operations, boot=lambda folder, _: _boot(folder), truth=truth)


def _boot(root: Path) -> Found:
    try:
        return asyncio.run(_look(root))
    except (AxonError, OSError, apsw.Error) as error:
        return Found(corrupt=f"{type(error).__name__}: {error}")


async def _look(root: Path) -> Found:
    agent = Agent(root)
    entries = agent.log.recovery.replayed
    values = await agent.values()
    await agent.close(clean=False)
    corrupt = agent.latch.state.reason if agent.latch.state.by == "kernel" else _left_over(root)
    return Found(entries=entries, values=values, corrupt=corrupt)


def _left_over(root: Path) -> str | None:
    """A start removes what a cut left of files that were being written."""
    left = [path.name for path in root.rglob(f".*{TEMPORARY}")]
    return f"left over: {left}" if left else None
