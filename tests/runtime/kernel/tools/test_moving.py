"""Tools that move an actuator: the real tools host, with the actuators between policy and the function."""

from __future__ import annotations

import asyncio

import pytest

from runtime.abi.errors import ActuatorRefused, AgentStopped

from ..actuators.rig import Rig
from .conftest import World

ARM = """
from runtime import tool

moved = []

@tool
def move(angle: float = 45, slowly: bool = False) -> list:
    moved.append(angle)
    return moved

@tool
def look() -> list:
    return moved
"""


@pytest.fixture
async def rig(world: World) -> Rig:
    """Actuators, an arm among them that the tool moves."""
    made = Rig()
    world.module("arm", ARM)
    rules = '[policy."arm.look"]\ndecision = "allow"\n[policy."arm.move"]\ndecision = "allow"\n'
    await world.started(rules, mover=made.actuators)
    return made


async def test_a_calls_value_goes_out_by_position_by_name_and_by_default(world: World, rig: Rig) -> None:
    await world.call("arm.move", 30)
    await world.call("arm.move", angle=60, slowly=True)
    assert await world.call("arm.move") == [30, 60, 45]
    assert rig.wire.values() == [("arm", 30.0), ("arm", 60.0), ("arm", 45.0)]


async def test_out_of_range_the_function_isnt_called(world: World, rig: Rig) -> None:
    with pytest.raises(ActuatorRefused, match="from 0 to 90"):
        await world.call("arm.move", 91)
    assert await world.call("arm.look") == []
    assert rig.wire.sent == []


async def test_while_stopped_the_function_isnt_called_and_others_are(world: World, rig: Rig) -> None:
    rig.stop()
    with pytest.raises(AgentStopped):
        await world.call("arm.move", 30)
    assert await world.call("arm.look") == []
    rig.clear()
    await world.call("arm.move", 30)
    assert rig.wire.values() == [("arm", 30.0)]


async def test_a_stop_while_a_person_is_asked_wins_over_the_approval(world: World) -> None:
    rig = Rig()
    world.module("arm", ARM)
    tools = await world.started('[policy."arm.move"]\ndecision = "escalate"\n', mover=rig.actuators)
    call = asyncio.ensure_future(world.call("arm.move", 30))
    (question,) = await world.until(lambda: tools.approvals.pending)
    rig.stop()
    await tools.approvals.answer(question.id, approve=True, by="ann")
    with pytest.raises(AgentStopped):
        await call
    assert rig.wire.values() == []
