"""Policy before real calls: what is refused, how that is recorded, and what a block can see."""

from __future__ import annotations

import pytest

from runtime.abi.errors import KernelStopping, PolicyDenied, ToolFailed, ToolUnavailable

from .conftest import World

ARM = """
from runtime import tool

HOME = object()

@tool
def move(x: float, y: float = 0.5, *, at=HOME) -> list:
    return [x, y]

@tool
def home() -> str:
    return "home"
"""
RULES = """
[policy."arm.move"]
decision = "allow"
arguments.x = {min = -1, max = 1}
arguments.y = {min = 0, max = 1}
"""


async def arm(world: World, rules: str) -> None:
    world.module("arm", ARM)
    await world.started(rules)


async def test_without_a_policy_nothing_may_be_called(world: World) -> None:
    await arm(world, "")
    with pytest.raises(PolicyDenied, match=r"arm\.move was denied: no rule names it"):
        await world.call("arm.move", 0)


async def test_what_is_within_the_bounds_is_called(world: World) -> None:
    await arm(world, RULES)
    assert await world.call("arm.move", 0.5) == [0.5, 0.5]
    assert world.messages("policy") == []


@pytest.mark.parametrize("given", [([5], {}), ([], {"x": 5}), ([0, 5], {}), ([float("nan")], {}), ([True], {})])
async def test_a_bound_holds_however_the_argument_is_given(
    world: World, given: tuple[list[object], dict[str, object]]
) -> None:
    await arm(world, RULES)
    args, kwargs = given
    with pytest.raises(PolicyDenied, match="isn't from"):
        await world.call("arm.move", *args, **kwargs)


async def test_a_default_that_no_literal_shows_is_not_within_a_bound(world: World) -> None:
    await arm(world, RULES + "arguments.at = {max = 1}\n")
    with pytest.raises(PolicyDenied, match="at is bounded and isn't given"):
        await world.call("arm.move", 0)
    assert await world.call("arm.move", 0, at=1) == [0, 0.5]


async def test_a_refusal_is_recorded_with_rule_and_arguments(world: World) -> None:
    await arm(world, RULES)
    with pytest.raises(PolicyDenied) as caught:
        await world.call("arm.move", 5, block="block-1")
    assert (caught.value.facts["name"], caught.value.facts["rule"]) == ("arm.move", "arm.move")
    (message,) = world.messages("policy")
    assert message.text == "arm.move was denied: x = 5 isn't from -1 to 1 (rule arm.move)"
    assert message.facts == {
        "name": "arm.move",
        "rule": "arm.move",
        "reason": "x = 5 isn't from -1 to 1",
        "arguments": {"x": 5, "y": 0.5},
        "block": "block-1",
    }
    assert "kernel:policy:denied" in world.types()


async def test_a_loop_of_refused_calls_does_not_flood_the_log_and_is_counted(world: World) -> None:
    await arm(world, RULES)
    assert world.tools
    for _ in range(2000):
        with pytest.raises(PolicyDenied):
            await world.call("arm.move", 5, block="block-1")
    assert len(world.messages("policy")) == 8
    world.tools._refusals.flush(2**60)
    assert world.messages("policy")[-1].text == "1992 more calls were denied, of arm.move"
    assert world.types().count("kernel:policy:denied") == 9


async def test_a_rate_refuses_what_comes_too_often(world: World) -> None:
    await arm(world, '[policy."arm.home"]\ndecision = "allow"\nrate = "2/h"')
    assert [await world.call("arm.home"), await world.call("arm.home")] == ["home", "home"]
    with pytest.raises(PolicyDenied, match="more than 2/h"):
        await world.call("arm.home")


async def test_what_is_never_allowed_is_not_offered_and_says_why(world: World) -> None:
    await arm(world, RULES)
    assert world.tools
    (module,) = world.tools.scope.modules
    assert [member.name for member in module.members] == ["move"]
    assert world.reason("arm.home") == "denied by policy"


async def test_a_module_of_which_nothing_is_allowed_is_not_offered(world: World) -> None:
    await arm(world, '[policy."arm.*"]\ndecision = "deny"')
    assert world.tools
    assert world.tools.scope.modules == []
    assert world.reason("arm.move") == world.reason("arm.home") == "denied by policy"


async def test_an_unknown_tool_is_denied_unless_a_rule_would_allow_it(world: World) -> None:
    await arm(world, '[policy."arm.*"]\ndecision = "allow"')
    with pytest.raises(PolicyDenied):
        await world.call("leg.kick", 1, hard=True)
    with pytest.raises(ToolUnavailable, match="arm has no tool kick"):
        await world.call("arm.kick")
    (message,) = world.messages("policy")
    assert message.facts["arguments"] == {"0": 1, "hard": True}


async def test_a_denied_tool_is_denied_whatever_its_arguments(world: World) -> None:
    await arm(world, RULES)
    with pytest.raises(PolicyDenied):
        await world.call("arm.home", "too", many=1)
    with pytest.raises(ToolFailed, match="missing a required argument"):
        await world.call("arm.move")


async def test_rules_that_can_mean_nothing_are_told(world: World) -> None:
    await arm(world, RULES.replace("arguments.y", "arguments.z") + '\n[policy."arm.mvoe"]\ndecision = "deny"')
    assert world.tools
    assert world.tools.mistakes == [
        "the rule arm.mvoe names no tool: arm has move, home",
        "the rule arm.move bounds z, which arm.move doesn't take: every call of it is denied",
    ]
    assert any("arm.mvoe" in line for line in world.said)


async def test_a_person_who_has_more_time_than_the_block_is_told(world: World) -> None:
    world.module("arm", ARM)
    rules = '[policy."arm.move"]\ndecision = "escalate"\n[policy."arm.home"]\ndecision = "escalate"\nask_s = 5\n'
    tools = await world.started(rules, block_s=10.0)
    assert tools.mistakes == ["the rule arm.move gives a person 30 s, but a block ends after 10 s: [capsule] timeout_s"]


async def test_after_the_shutdown_has_begun_nothing_is_called(world: World) -> None:
    await arm(world, RULES)
    assert world.tools
    world.tools.interrupt()
    with pytest.raises(KernelStopping):
        await world.call("arm.move", 0)
