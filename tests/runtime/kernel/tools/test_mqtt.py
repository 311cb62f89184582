"""Approvals over a real broker: a person who only has MQTT hears of each call and answers it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.abi.clock import wall_ms
from runtime.abi.errors import ApprovalUnknown, PolicyDenied
from runtime.ingest.command import Command, CommandGate
from runtime.kernel.alongside import alongside
from runtime.kernel.commands import Commands, Status
from runtime.kernel.tools.announcer import Announcer
from runtime.kernel.tools.approvals import Asked
from runtime.mqtt.broker import plan
from runtime.mqtt.client import BrokerAddress, Connection

from .conftest import LIMIT_S, World
from .test_approvals import asked, door


class Person:
    """Somebody with an MQTT client, and the kernel's command connection that serves them."""

    def __init__(self, world: World, address: BrokerAddress) -> None:
        self.world = world
        self.address = address
        self.heard: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.unknown: list[ApprovalUnknown] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.announcer = Announcer(agent="rover", pending=self._pending)

    def _pending(self) -> list[Asked]:
        assert self.world.tools
        return self.world.tools.approvals.pending

    async def begin(self) -> None:
        """Both clients are connected and have subscribed."""
        listening, serving = asyncio.Event(), asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._listen(listening)), asyncio.ensure_future(self._serve(serving))]
        async with asyncio.timeout(LIMIT_S):
            await listening.wait()
            await serving.wait()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def answer(self, approval: str, *, id_: str = "c1", retain: bool = False, **parts: Any) -> None:
        command = {"id": id_, "issued_ms": wall_ms(), "ttl_ms": 60_000, "approval": approval, "by": "ann", **parts}
        async with Connection(self.address) as connection:
            await connection.publish("axon/rover/approve", msgspec.json.encode(command), qos=1, retain=retain)

    async def hears(self, state: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.world.until(
            lambda: next((one for one in self.heard if one["state"] == state), None)
        )
        return found

    async def _listen(self, listening: asyncio.Event) -> None:
        async with Connection(self.address) as connection:
            await connection.subscribe("axon/rover/approval")
            listening.set()
            async for message in connection.messages():
                self.heard.append(msgspec.json.decode(message.payload))

    async def _serve(self, serving: asyncio.Event) -> None:
        def status() -> Status:
            serving.set()  # it is published once all is subscribed
            return Status(state="online")

        commands = Commands(
            agent="rover",
            gate=CommandGate(),
            status=status,
            act=self._act,
            refused=lambda error: self.refused.append(error.message),
        )
        async with (
            Connection(self.address) as connection,
            alongside(self.announcer.serve(connection)),
        ):
            await commands.serve(connection)

    async def _act(self, command: Command) -> None:
        assert self.world.tools
        try:
            await self.world.tools.approvals.answer(command.approval, approve=not command.deny, by=command.by)
        except ApprovalUnknown as error:
            self.unknown.append(error)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerAddress]:
    """The embedded broker as a process of its own."""
    planned = plan("private", tmp_path, mosquitto="")
    process = subprocess.Popen(planned.argv or [])
    yield planned.address
    process.kill()
    process.wait(LIMIT_S)


@pytest.fixture
async def person(world: World, broker: BrokerAddress) -> AsyncIterator[Person]:
    """A person at the broker who hears what the world announces."""

    def listens() -> bool:
        with suppress(OSError), socket.create_connection((broker.host, broker.port), timeout=1):
            return True
        return False

    await world.until(listens)
    made = Person(world, broker)
    world.announce = made.announcer.add
    yield made
    await made.end()


async def test_a_person_hears_of_a_call_and_approves_it(world: World, person: Person) -> None:
    await door(world)
    await person.begin()
    call, question = await asked(world, "front", block="block-1")
    heard = await person.hears("asked")
    assert heard == {
        "state": "asked",
        "id": question.id,
        "name": "door.unlock",
        "arguments": {"door": "front", "wide": False},
        "rule": "door.unlock",
        "block": "block-1",
        "asked_ms": question.asked_ms,
        "ask_s": 30.0,
        "until_ms": question.asked_ms + 30_000,
        "by": "",
    }
    await person.answer(question.id)
    assert await call == 1
    assert (await person.hears("approved"))["by"] == "ann"
    (message,) = world.messages("approval")
    assert message.facts["by"] == "ann"


async def test_a_person_denies_a_call(world: World, person: Person) -> None:
    await door(world)
    await person.begin()
    call, question = await asked(world, "front")
    await person.answer(question.id, deny=True)
    with pytest.raises(PolicyDenied, match="ann denied it"):
        await call
    assert (await person.hears("denied"))["id"] == question.id


async def test_a_retained_a_late_and_a_repeated_answer_approve_nothing(world: World, person: Person) -> None:
    await door(world)
    call, question = await asked(world, "front")
    await person.answer(question.id, id_="r", retain=True)  # told to whoever subscribes later
    await person.begin()
    await world.until(lambda: len(person.refused) == 1)
    await person.answer(question.id, id_="late", issued_ms=wall_ms() - 120_000)
    await world.until(lambda: len(person.refused) == 2)
    await person.answer("another", id_="c1")
    await world.until(lambda: person.unknown)
    await person.answer(question.id, id_="c1")
    await world.until(lambda: len(person.refused) == 3)
    assert [word in text for word, text in zip(["retained", "expired", "repeated"], person.refused, strict=True)]
    assert not call.done()
    await person.answer(question.id, id_="c2")
    assert await call == 1


async def test_who_connects_later_hears_what_waits_now(world: World, person: Person) -> None:
    await door(world)
    call, question = await asked(world, "front")
    await person.begin()
    assert (await person.hears("asked"))["id"] == question.id
    await person.answer(question.id)
    assert await call == 1
