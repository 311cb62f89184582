"""A spare incarnation stands by: it takes the place of one that ends, with what is importable now."""

import asyncio
import os
import signal
from typing import Any

from capsule.scope import AxonScope, Member, Module

LIMIT_S = 40.0


async def spare_of(capsule: Any) -> int:
    """The pid of the spare, once it takes blocks."""
    async with asyncio.timeout(LIMIT_S):
        while not (capsule.capsule._spare and capsule.capsule._spare.is_ready):  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
    return int(capsule.supervisor.pids()["capsule.spare"][0])


async def test_the_spare_serves_when_an_incarnation_ends(capsule: Any) -> None:
    await capsule.one("x = 1")
    spare = await spare_of(capsule)
    assert spare != capsule.supervisor.pids()["capsule"][0]
    assert not (await capsule.one("import os; os._exit(3)")).ok
    result = await capsule.one("'x' in dir()")
    assert result.value is False
    assert capsule.supervisor.pids()["capsule"][0] == spare


async def test_there_is_a_new_spare_afterwards(capsule: Any) -> None:
    await capsule.one("1")
    first = await spare_of(capsule)
    await capsule.one("import os; os._exit(3)")
    assert await spare_of(capsule) != first


async def test_a_spare_knows_what_can_be_imported(capsule: Any) -> None:
    async def tool(_: Any) -> str:
        return "done"

    capsule.tool = tool
    await capsule.one("1")
    await spare_of(capsule)
    member = Member(name="move", declaration="def move() -> str", doc="", is_async=False)
    capsule.scope(AxonScope(modules=[Module(name="arm", members=[member])]))
    await capsule.one("import os; os._exit(3)")
    assert (await capsule.one("import arm; arm.move()")).value == "done"


async def test_a_spare_that_ends_costs_the_serving_one_nothing(capsule: Any) -> None:
    await capsule.one("x = 1")
    os.kill(await spare_of(capsule), signal.SIGKILL)
    assert (await capsule.one("x")).value == 1
    assert await spare_of(capsule)
