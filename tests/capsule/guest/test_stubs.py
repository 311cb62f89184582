"""Tool modules as a block sees them: imported, inspected, called, refused."""

from __future__ import annotations

import asyncio

import pytest

from capsule.scope import AxonScope, Member, Module, Unavailable
from runtime.abi.errors import PolicyDenied, ToolFailed

pytestmark = pytest.mark.sandbox

ARM = Module(
    name="arm",
    doc="Moves the arm.",
    members=[
        Member(name="move", declaration="def move(x: float, *, fast: bool = False) -> str", doc="Move it."),
        Member(name="look", declaration="async def look(where: str = 'up') -> list[int]", is_async=True),
    ],
)
SCOPE = AxonScope(modules=[ARM], unavailable=[Unavailable(name="leg", reason="SyntaxError: line 3")])


@pytest.fixture
async def arm(capsule):
    capsule.calls = []

    async def tool(call):
        capsule.calls.append(call)
        return [call.member, call.args, call.kwargs]

    capsule.tool = tool
    capsule.scope(SCOPE)
    return capsule


async def test_a_sync_tool_is_called_and_its_value_comes_back(arm):
    result = await arm.one("import arm\narm.move(1.5, fast=True)")
    assert result.value == ["move", [1.5], {"fast": True}]
    assert arm.calls[0].module == "arm"


async def test_an_async_tool_is_awaited(arm):
    result = await arm.one("from arm import look\nimport asyncio\nawait asyncio.gather(look(), look('down'))")
    assert result.value == [["look", [], {}], ["look", ["down"], {}]]


async def test_names_signatures_and_words_are_the_tools(arm):
    result = await arm.one(
        "import arm, inspect\n[arm.__doc__, arm.move.__name__, arm.move.__doc__, str(inspect.signature(arm.move)),"
        " inspect.iscoroutinefunction(arm.look), arm.__all__]"
    )
    signature = "(x: float, *, fast: bool = False) -> str"
    assert result.value == ["Moves the arm.", "move", "Move it.", signature, True, ["move", "look"]]


async def test_wrong_arguments_never_leave_the_block(arm):
    result = await arm.one("import arm\narm.move()")
    assert "TypeError" in result.error.message
    assert not arm.calls


async def test_an_unavailable_module_says_why(arm):
    result = await arm.one("import leg")
    assert "SyntaxError: line 3" in result.error.message


async def test_refusals_and_failures_have_their_classes(arm):
    async def tool(call):
        if call.member == "move":
            raise PolicyDenied("not now")
        raise ToolFailed("it broke")

    arm.tool = tool
    result = await arm.one(
        "import arm\ntry:\n    arm.move(1)\nexcept PolicyDenied as error:\n    print(error)\n"
        "try:\n    await arm.look()\nexcept ToolFailed as error:\n    print(error)"
    )
    assert ["not now" in line or "it broke" in line for line in result.stdout] == [True, True]


async def test_a_tool_that_hangs_never_hangs_the_block_past_its_timeout(arm):
    cancelled = asyncio.Event()

    async def tool(call):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    arm.tool = tool
    results = [
        await arm.one("import arm\narm.move(1)", timeout_s=0.3),
        await arm.one("import arm\nawait arm.look()", timeout_s=0.3),
        *await arm.run("import arm\narm.move(1)", "import arm\nawait arm.look()", timeout_s=0.3),
    ]
    assert {result.error.kind for result in results} == {"timeout"}
    assert arm.incarnations == 1
    assert cancelled.is_set()


async def test_an_answer_after_its_block_is_nobodys(arm):
    release = asyncio.Event()

    async def tool(call):
        await release.wait()
        return 1

    arm.tool = tool
    await arm.one("import arm\narm.move(1)", timeout_s=0.3)
    release.set()
    assert (await arm.one("2")).value == 2


async def test_a_scope_that_changes_reaches_the_next_block(arm):
    await arm.one("import arm")
    arm.scope(AxonScope(modules=[Module(name="arm", members=[Member(name="new", declaration="def new() -> None")])]))
    assert (await arm.one("import arm\narm.new()")).value == ["new", [], {}]
    assert "AttributeError" in (await arm.one("arm.move(1)")).error.message
    arm.scope(AxonScope())
    assert (
        "ModuleNotFoundError" in (await arm.one("import sys\nsys.modules.pop('arm', None)\nimport arm")).error.message
    )


async def test_a_call_that_ends_unforeseen_is_a_failed_tool(arm):
    """A defect of the caller's, or a value that no message carries: the block hears of it at once."""
    heard = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    for answer in (ValueError("defect"), object(), 2**80):

        async def tool(_, answer=answer):
            if isinstance(answer, Exception):
                raise answer
            return answer

        arm.tool = tool
        result = await arm.one("import arm\ntry: arm.move(1.0)\nexcept ToolFailed as e: words = str(e)\nwords")
        assert "the call failed" in result.value
    assert arm.incarnations == 1


async def test_stops_in_the_middle_of_calls_tear_no_message(arm):
    async def tool(call):
        return call.args

    arm.tool = tool
    await arm.one("import arm")
    for number in range(100):
        blocks, results = arm.blocks("for i in range(10**6): arm.move(float(i))"), {}
        running = asyncio.ensure_future(arm.capsule.execute(blocks, results.__setitem__))
        await asyncio.sleep((number % 25) * 0.0002)
        arm.capsule.interrupt([blocks[0].id])
        await asyncio.wait_for(running, 30)
        assert results[blocks[0].id].error.kind == "interrupt"
        assert (await arm.one("arm.move(2.0)")).value == [2.0]
    assert arm.incarnations == 1


async def test_a_member_that_policy_denies_can_be_called_and_is_refused(arm):
    async def tool(call):
        raise PolicyDenied(f"{call.member}: no rule allows it")

    arm.tool = tool
    arm.scope(AxonScope(modules=[ARM], unavailable=[Unavailable(name="arm.burn", reason="denied by policy")]))
    result = await arm.one("import arm\narm.burn(True)")
    assert result.error.message.startswith("PolicyDenied: ")
    assert "no rule allows it" in result.error.message
    arm.scope(AxonScope(unavailable=[Unavailable(name="lamp.on", reason="denied by policy")]))
    assert "PolicyDenied" in (await arm.one("import lamp\nlamp.on()")).error.message
