"""The whole way: a block in its sandbox, policy, a person, the tools host and back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from axon.client import Control
from runtime.abi.entries import decode

from ..conftest import LIMIT_S, Agent, until

MakeAgent = Callable[..., Agent]
CONFIG = """
[capsule]
timeout_s = {timeout_s}
[policy]
ask_s = 30
[policy."arm.*"]
decision = "allow"
[policy."arm.move"]
decision = "allow"
arguments.x = {{min = -1, max = 1}}
[policy."arm.fire"]
decision = "escalate"
[policy."arm.off"]
decision = "deny"
"""
ARM = '''
"""An arm."""
import asyncio, os, time
from runtime import tool

@tool
def move(x: float, *, fast: bool = False) -> list:
    """Move it."""
    return [x, fast]

@tool
async def reach(x: float) -> str:
    await asyncio.sleep(0)
    return f"reached {x}"

@tool
def fire(at: str) -> str:
    return f"fired at {at}"

@tool
def off() -> None:
    pass

@tool
def crash():
    os._exit(1)

@tool
def hang():
    time.sleep(600)

@tool
def fail():
    raise KeyError("no such joint")
'''


def start(make_agent: MakeAgent, *, timeout_s: float = 30) -> Agent:
    agent = make_agent(sensors=False, config=CONFIG.format(timeout_s=timeout_s))
    (agent.folder / "modules").mkdir()
    (agent.folder / "modules" / "arm.py").write_text(ARM)
    (agent.folder / "modules" / "leg.py").write_text("import no_such_motor")
    return agent.start()


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return start(make_agent)


def run(agent: Agent, code: str) -> dict[str, Any]:
    with Control(agent.folder, timeout_s=LIMIT_S) as control:
        result: dict[str, Any] = control.ask("exec", code=code)
    return result


def entries(agent: Agent, kind: str) -> list[Any]:
    """The machine's messages of one type, as they lie on the disk."""
    found = [decode(row.body, row.seq).data for row in agent.rows() if row.type == "axon:system:message"]
    return [data for data in found if data.type == kind]  # type: ignore[union-attr] # all are messages


def test_a_block_calls_tools_plain_and_async(agent: Agent) -> None:
    result = run(agent, "import arm\n[arm.move(0.5, fast=True), await arm.reach(x=2)]")
    assert (result["ok"], result["value"]) == (True, [[0.5, True], "reached 2"])


def test_a_block_sees_signature_doc_and_what_is_missing(agent: Agent) -> None:
    code = (
        "import arm, inspect\n"
        "try:\n    import leg\nexcept ImportError as error:\n    print(error)\n"
        "[str(inspect.signature(arm.move)).replace(chr(39), ''), arm.move.__doc__, 'off' in arm.__all__]"
    )
    result = run(agent, code)
    assert result["value"] == ["(x: float, *, fast: bool = False) -> list", "Move it.", False]
    assert "no_such_motor" in result["stdout"][0]


def test_a_refused_call_raises_in_the_block_and_is_recorded_beside_its_action(agent: Agent) -> None:
    result = run(agent, "import arm\ntry:\n    arm.move(5)\nexcept PolicyDenied as error:\n    print(error)")
    assert result["ok"]
    assert "arm.move was denied: x = 5 isn't from -1 to 1 (rule arm.move)" in result["stdout"][0]
    (action,) = [decode(row.body, row.seq).data for row in agent.rows() if row.type == "cognet:action:python"]
    (message,) = until(lambda: entries(agent, "policy"), "the refusal is on the disk")
    assert message.facts["arguments"] == {"x": 5, "fast": False}
    assert message.facts["block"] == action.action  # type: ignore[union-attr] # an action has one


def test_a_refused_call_that_nobody_catches_fails_the_block(agent: Agent) -> None:
    result = run(agent, "import arm\narm.move(-2)")
    assert not result["ok"]
    assert "PolicyDenied" in result["error"]["message"]


def test_a_tool_that_raises_fails_with_its_words(agent: Agent) -> None:
    result = run(agent, "import arm\ntry:\n    arm.fail()\nexcept ToolFailed as error:\n    print(error)")
    assert "KeyError: 'no such joint' (arm.py:" in result["stdout"][0]


def test_a_crash_of_the_host_fails_the_call_and_later_blocks_work(agent: Agent) -> None:
    result = run(agent, "import arm\ntry:\n    arm.crash()\nexcept ToolFailed as error:\n    print(error)")
    assert "the tools host ended" in result["stdout"][0]
    until(lambda: agent.ask("tools")["scope"]["modules"], "the host is back")
    assert run(agent, "import arm\narm.move(0)")["value"] == [0, False]


def test_a_hung_tool_hangs_no_block_past_its_timeout(make_agent: MakeAgent) -> None:
    agent = start(make_agent, timeout_s=1)
    assert run(agent, "import arm\narm.hang()")["error"]["kind"] == "timeout"
    assert run(agent, "import arm\narm.move(0)")["value"] == [0, False]


def asks(agent: Agent, code: str) -> tuple[Future[dict[str, Any]], dict[str, Any]]:
    """A block that runs into a question, and the question."""
    pool = ThreadPoolExecutor(1)
    result = pool.submit(run, agent, code)
    pool.shutdown(wait=False)
    (question,) = until(lambda: agent.ask("approvals"), "it asks")
    return result, question


def test_an_approved_call_goes_on_and_a_denied_one_raises(agent: Agent) -> None:
    result, question = asks(agent, "import arm\narm.fire('the target')")
    assert (question["name"], question["arguments"]) == ("arm.fire", {"at": "the target"})
    agent.ask("approve", id=question["id"], by="ann")
    assert result.result(LIMIT_S)["value"] == "fired at the target"
    result, question = asks(agent, "arm.fire('the cat')")
    agent.ask("approve", id=question["id"], deny=True, by="ann")
    assert "ann denied it" in result.result(LIMIT_S)["error"]["message"]
    assert [message.facts["by"] for message in entries(agent, "approval")] == ["ann"]
    (message,) = until(lambda: entries(agent, "policy"), "the denial is on the disk")
    assert message.facts["by"] == "ann"


def test_a_block_that_times_out_takes_its_question_with_it(make_agent: MakeAgent) -> None:
    agent = start(make_agent, timeout_s=2)
    result, _ = asks(agent, "import arm\narm.fire('the cat')")
    assert result.result(LIMIT_S)["error"]["kind"] == "timeout"
    until(lambda: agent.ask("approvals") == [], "nothing waits any more")
    assert entries(agent, "approval") == []


def test_a_flood_of_refused_calls_leaves_few_entries(agent: Agent) -> None:
    code = "import arm\nfor _ in range(500):\n    try:\n        arm.move(9)\n    except PolicyDenied:\n        pass"
    assert run(agent, code)["ok"]
    assert len(entries(agent, "policy")) <= 10
