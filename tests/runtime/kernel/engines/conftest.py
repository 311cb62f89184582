"""Real workers under a real supervisor, asked as the brain's link asks; only the log is a stand-in."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.abi.link import Call
from runtime.config.cognet import EngineRole
from runtime.engines.protocol import Order
from runtime.engines.provider import Offer, provider
from runtime.kernel.engines.engines import Engines
from runtime.kernel.engines.roles import Role
from runtime.kernel.engines.worker import Patience
from runtime.kernel.supervisor import Supervisor

LIMIT_S = 30.0
SCRIPT = """
format = 1
pace = {piece_ms = 0}

[[rules]]
when = 'count'
reply = "one two three four five"

[[rules]]
when = 'hang'
reply = "begun and then nothing"
pace = {piece_ms = 600000}

[[rules]]
when = 'say (?P<word>\\w+)'
reply = "${word}!"

[[transforms]]
when = 'slow'
output = "done"
delay_ms = 600000

[[transforms]]
when = '(?P<all>.*)'
output = "${all} transformed"

[[streams]]
when = '(?P<s>[^.]+)\\.'
output = "${s}"
"""


class Log:
    """What the engines ask of the log."""

    def __init__(self) -> None:
        self.last_seq = 7
        self.waits: list[tuple[int, asyncio.Future[None]]] = []

    def durable(self, seq: int) -> asyncio.Future[None]:
        self.waits.append((seq, asyncio.get_running_loop().create_future()))
        return self.waits[-1][1]


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = Log()
        self.told: list[tuple[str, Any, str | None]] = []
        self.said: list[str] = []
        self.facts: list[Any] = []
        self.supervisor = Supervisor(
            tell=lambda type_, data: self.told.append((type_, data, None)), say=self.said.append
        )
        self.engines: Engines
        self._calls = 0

    def _tell(self, type_: str, data: Any, wake_id: str | None = None) -> None:
        self.told.append((type_, data, wake_id))

    def role(self, name: str = "main", type_: str = "generate", *, leaves: bool = False, **options: Any) -> Role:
        order = Order(
            role=name,
            type=type_,  # type: ignore[arg-type]  # a test's word
            provider="scripted",
            model="script.toml",
            options=options,
            folder=str(self.folder),
        )
        offer: Offer = provider("scripted").offer(order)
        offer = msgspec.structs.replace(offer, leaves_machine=leaves)
        return Role(name=name, want=EngineRole(type=type_), order=order, offer=offer)  # type: ignore[arg-type]  # as above

    def start(self, *roles: Role, patience: Patience | None = None) -> Engines:
        self.engines = Engines(
            roles or [self.role()],
            log=self.log,  # type: ignore[arg-type]  # the two things that are asked of it
            supervisor=self.supervisor,
            tell=self._tell,
            changed=self.facts.append,
            patience=patience,
        )
        return self.engines

    def ask(
        self, verb: str, *args: Any, wake_id: str | None = "w", cursor: int | None = 3, pieces: list[Any] | None = None
    ) -> asyncio.Task[Any]:
        """Begin a call as the brain's link does."""
        self._calls += 1
        call = Call(self._calls, f"engine.{verb}", list(args), wake_id, cursor)
        heard = [] if pieces is None else pieces
        return asyncio.get_running_loop().create_task(self.engines.verbs[call.verb](call, heard.append))  # type: ignore[arg-type]  # a coroutine

    def generate(self, text: str, *, options: dict[str, Any] | None = None, **given: Any) -> asyncio.Task[Any]:
        return self.ask(
            "generate", given.pop("role", "main"), [{"role": "user", "content": text}], options or {}, **given
        )

    def spans(self, state: str) -> list[Any]:
        return [data for type_, data, _ in self.told if type_ == f"kernel:engine:{state}"]

    def pid(self, role: str = "main") -> int:
        return self.supervisor.pids().get(f"engine.{role}", (0, 0))[0]

    def kill(self, role: str = "main") -> None:
        os.kill(self.pid(role), signal.SIGKILL)

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(LIMIT_S):
            while not (value := condition()):  # noqa: ASYNC110 (conditions of any kind)
                await asyncio.sleep(0.005)
            return value

    async def within(self, work: Any) -> Any:
        async with asyncio.timeout(LIMIT_S):
            return await work


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose workers are gone when the test is over."""
    (tmp_path / "script.toml").write_text(SCRIPT)
    made = World(tmp_path)
    yield made
    for name in list(made.supervisor.children):
        await made.supervisor.end(name)
