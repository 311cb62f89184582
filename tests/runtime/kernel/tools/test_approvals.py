"""Calls that a person must approve: asked, answered once, for exactly that call; nobody there means denied."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsule.errors import AxonError
from runtime.abi.errors import ApprovalUnknown, PolicyDenied, StorageFailed, ToolUnavailable
from runtime.kernel.tools.approvals import MAX_PENDING, Asked, waiting

from .conftest import World

DOOR = """
import os
from runtime import tool

opened = []

@tool
def unlock(door: str, wide: bool = False) -> int:
    opened.append(door)
    return len(opened)

@tool
def crash():
    os._exit(1)
"""
ASK = '[policy]\nask_s = 30\n[policy."door.unlock"]\ndecision = "escalate"\n[policy."door.crash"]\ndecision = "allow"\n'


async def door(world: World, rules: str = ASK) -> None:
    world.module("door", DOOR)
    await world.started(rules)


async def asked(world: World, *args: Any, block: str = "b") -> tuple[asyncio.Future[Any], Asked]:
    """A call that waits, and the question about it."""
    assert world.tools
    approvals = world.tools.approvals
    before = {one.id for one in approvals.pending}
    call = asyncio.ensure_future(world.call("door.unlock", *args, block=block))
    (question,) = await world.until(lambda: [one for one in approvals.pending if one.id not in before])
    return call, question


async def answer(world: World, question: Asked, *, approve: bool) -> Asked:
    assert world.tools
    return await world.tools.approvals.answer(question.id, approve=approve, by="ann")


async def test_an_approved_call_is_made_and_its_approval_is_durable_before(world: World) -> None:
    await door(world)
    call, question = await asked(world, "front")
    assert (question.name, question.arguments, question.rule) == (
        "door.unlock",
        {"door": "front", "wide": False},
        "door.unlock",
    )
    await answer(world, question, approve=True)
    (message,) = world.messages("approval")
    assert message.text == "ann approved door.unlock(door='front', wide=False)"
    assert (message.facts["by"], message.facts["id"], message.facts["rule"]) == ("ann", question.id, "door.unlock")
    assert world.log.durable(world.log.last_seq).done()
    assert await call == 1
    assert [type_ for type_ in world.types() if "policy" in type_] == [
        "kernel:policy:escalated",
        "kernel:policy:approved",
    ]


async def test_a_denied_call_is_not_made_and_who_denied_it_is_recorded(world: World) -> None:
    await door(world)
    call, question = await asked(world, "front")
    await answer(world, question, approve=False)
    with pytest.raises(PolicyDenied, match=r"door\.unlock was denied: ann denied it"):
        await call
    (message,) = world.messages("policy")
    assert message.facts["by"] == "ann"


async def test_with_nobody_there_it_is_denied_at_the_deadline(world: World) -> None:
    await door(world, ASK.replace('"escalate"', '"escalate"\nask_s = 0.05'))
    with pytest.raises(PolicyDenied, match=r"nobody answered within 0\.05 s"):
        await world.call("door.unlock", "front")
    assert world.tools
    assert world.tools.approvals.pending == []
    assert "kernel:policy:expired" in world.types()
    assert world.messages("policy")[0].facts["arguments"]["door"] == "front"


async def test_an_approval_is_for_one_call_once(world: World) -> None:
    await door(world)
    call, question = await asked(world, "front")
    other, _ = await asked(world, "front")
    await answer(world, question, approve=True)
    with pytest.raises(ApprovalUnknown):
        await answer(world, question, approve=True)
    assert await call == 1
    assert not other.done()
    again, _ = await asked(world, "front")
    assert not again.done()
    for one in (other, again):
        one.cancel()
    await asyncio.gather(other, again, return_exceptions=True)


async def test_several_wait_at_once_and_are_answered_in_any_order(world: World) -> None:
    await door(world)
    waiting = [await asked(world, name, block=name) for name in ("a", "b", "c")]
    assert world.tools
    assert [one.block for one in world.tools.approvals.pending] == ["a", "b", "c"]
    await answer(world, waiting[2][1], approve=True)
    await answer(world, waiting[0][1], approve=False)
    await answer(world, waiting[1][1], approve=True)
    results = await asyncio.gather(*(call for call, _ in waiting), return_exceptions=True)
    assert [type(result) for result in results] == [PolicyDenied, int, int]


async def test_an_interrupted_block_takes_its_question_with_it(world: World) -> None:
    await door(world)
    call, question = await asked(world, "front")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    with pytest.raises(ApprovalUnknown):
        await answer(world, question, approve=True)
    assert [one.state for one in world.announced] == ["asked", "cancelled"]
    assert world.messages("approval") == []


async def test_every_change_is_announced_and_the_console_says_how_to_answer(world: World) -> None:
    await door(world)
    call, question = await asked(world, "front")
    await answer(world, question, approve=True)
    await call
    assert [(one.state, one.by) for one in world.announced] == [("asked", ""), ("approved", "ann")]
    assert any(line.endswith(waiting(question)) for line in world.said), "so that the line can be taken away again"
    assert question.id in waiting(question)


async def test_an_approval_that_cannot_be_recorded_approves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door(world)
    call, question = await asked(world, "front")

    def failed(*_args: Any, **_options: Any) -> Any:
        raise StorageFailed("the disk is gone")

    monkeypatch.setattr(world.log, "admit", failed)
    with pytest.raises(AxonError, match="the disk is gone"):
        await answer(world, question, approve=True)
    with pytest.raises(PolicyDenied, match="couldn't be recorded"):
        await call


async def test_a_host_that_ended_while_a_person_thought_is_told_to_the_block(world: World) -> None:
    await door(world)
    call, question = await asked(world, "front")
    with pytest.raises(AxonError, match="ended"):
        await world.call("door.crash")
    await answer(world, question, approve=True)
    with pytest.raises(ToolUnavailable):
        await call


async def test_no_more_wait_than_a_person_could_read(world: World) -> None:
    await door(world)
    calls = [asyncio.ensure_future(world.call("door.unlock", str(n))) for n in range(MAX_PENDING + 1)]
    (refused,) = await world.until(lambda: [call for call in calls if call.done()])
    with pytest.raises(PolicyDenied, match="wait for a person already"):
        refused.result()
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_at_the_shutdown_nothing_waits_any_more(world: World) -> None:
    await door(world)
    call, _ = await asked(world, "front")
    assert world.tools
    world.tools.interrupt()
    with pytest.raises(PolicyDenied, match="shutting down"):
        await call


@pytest.mark.parametrize("id_", ["", "nothing", "x" * 100_000, "\x00"])
async def test_what_nobody_asked_cannot_be_approved(world: World, id_: str) -> None:
    await door(world)
    assert world.tools
    with pytest.raises(ApprovalUnknown) as caught:
        await world.tools.approvals.answer(id_, approve=True, by="ann")
    assert len(str(caught.value)) < 500
