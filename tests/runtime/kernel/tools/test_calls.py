"""Calls of real tools in the real host: what they take, give back, and how they fail."""

from __future__ import annotations

import asyncio
import math

import pytest

from runtime.abi.errors import ToolFailed, ToolUnavailable

from .conftest import World

LAMP = '''
"""A lamp."""
import asyncio, dataclasses, sys, threading, time
from runtime import tool

level = 0.0

@tool
def dim(to: float, *, slowly: bool = False) -> float:
    """Set the lamp."""
    global level
    if to > 1:
        raise ValueError("too bright")
    level = to
    return level

@tool
async def fade(to: float) -> str:
    await asyncio.sleep(0)
    return f"faded to {to}"

@tool
def echo(*args, **kwargs):
    return {"args": args, "kwargs": kwargs}

gate = threading.Barrier(3, timeout=30)

@tool
def together() -> int:
    return gate.wait()

meeting = None

@tool
async def meet(of: int) -> bool:
    global meeting
    if meeting is None:
        meeting = asyncio.Barrier(of)
    await meeting.wait()
    return True

@tool
def odd():
    return object()

@tool
def leave():
    sys.exit(3)

@tool
def huge():
    return "x" * 5_000_000

@tool
def shout():
    print("the lamp is hot")
'''


@pytest.fixture
async def lamp(world: World) -> World:
    world.module("lamp", LAMP)
    await world.started()
    return world


async def test_a_plain_function_is_called_with_its_arguments(lamp: World) -> None:
    assert await lamp.call("lamp.dim", 0.5, slowly=True) == 0.5


async def test_an_async_function_is_awaited(lamp: World) -> None:
    assert await lamp.call("lamp.fade", to=1) == "faded to 1"


async def test_plain_values_cross_both_ways(lamp: World) -> None:
    value = [None, True, -1, 2**63, 1.5, "ä", b"\x00", [1, [2]], {"a": {"b": []}}]
    assert await lamp.call("lamp.echo", value, x=value) == {"args": [value], "kwargs": {"x": value}}


async def test_nan_and_infinity_cross_as_they_are(lamp: World) -> None:
    found = await lamp.call("lamp.echo", math.nan, math.inf)
    assert math.isnan(found["args"][0])
    assert found["args"][1] == math.inf


async def test_an_exception_fails_with_its_class_its_words_and_its_line(lamp: World) -> None:
    with pytest.raises(ToolFailed, match=r"ValueError: too bright \(lamp.py:13\)"):
        await lamp.call("lamp.dim", 2)


async def test_what_cannot_be_carried_fails_with_its_type(lamp: World) -> None:
    with pytest.raises(ToolFailed, match="returned a object"):
        await lamp.call("lamp.odd")
    with pytest.raises(ToolFailed, match="5000005 bytes"):
        await lamp.call("lamp.huge")


async def test_arguments_that_do_not_fit_fail_as_in_python(lamp: World) -> None:
    with pytest.raises(ToolFailed, match=r"TypeError: lamp\.dim: missing a required argument: 'to'"):
        await lamp.call("lamp.dim")
    with pytest.raises(ToolFailed, match="unexpected keyword"):
        await lamp.call("lamp.dim", 1, softly=True)


async def test_a_tool_that_exits_ends_its_call_alone(lamp: World) -> None:
    with pytest.raises(ToolFailed, match="SystemExit: 3"):
        await lamp.call("lamp.leave")
    assert await lamp.call("lamp.dim", 0.1) == 0.1
    assert lamp.restarts == 0


async def test_several_plain_functions_run_at_once(lamp: World) -> None:
    found = await asyncio.gather(*(lamp.call("lamp.together") for _ in range(3)))
    assert sorted(found) == [0, 1, 2]


async def test_async_functions_run_at_once_on_one_loop(lamp: World) -> None:
    assert await asyncio.gather(*(lamp.call("lamp.meet", 40) for _ in range(40))) == [True] * 40


async def test_state_of_a_module_lasts_from_call_to_call(lamp: World) -> None:
    await lamp.call("lamp.dim", 0.25)
    assert await lamp.call("lamp.dim", 0.75) == 0.75
    assert lamp.restarts == 0


async def test_what_a_tool_prints_goes_to_the_console(lamp: World) -> None:
    assert await lamp.call("lamp.shout") is None
    await lamp.until(lambda: "[tools] the lamp is hot" in lamp.said)


@pytest.mark.parametrize("name", ["lamp.nothing", "nothing.dim", "lamp.__init__", "os.system", "lamp.level"])
async def test_what_is_no_tool_is_unavailable(lamp: World, name: str) -> None:
    with pytest.raises(ToolUnavailable):
        await lamp.call(name)


async def test_a_name_that_is_no_name_is_unavailable_and_short(lamp: World) -> None:
    with pytest.raises(ToolUnavailable) as caught:
        await lamp.call(f"{'x' * 100_000}.{'y' * 100_000}")
    assert len(caught.value.message) < 500


async def test_without_modules_there_is_no_host(world: World) -> None:
    tools = world.start()
    assert world.supervisor.children == {}
    assert (tools.scope.modules, tools.scope.unavailable) == ([], [])
    with pytest.raises(ToolUnavailable):
        await world.call("lamp.dim", 1)


async def test_a_call_before_the_modules_are_imported_is_unavailable_with_the_reason(world: World) -> None:
    world.module("lamp", LAMP)
    world.start()
    with pytest.raises(ToolUnavailable, match="being imported"):
        await world.call("lamp.dim", 1)
