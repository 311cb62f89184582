"""Tools of a whole kernel, as a person at the command line sees them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from runtime.abi.errors import ApprovalUnknown, CallInvalid

from ..conftest import Agent, until

MakeAgent = Callable[..., Agent]
RULES = '[policy."lamp.*"]\ndecision = "allow"\n[policy."lamp.dimm"]\ndecision = "deny"\n'
LAMP = "from runtime import tool\n\n@tool\ndef dim(level: float) -> float:\n    return level\n"


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    made = make_agent(sensors=False, config=RULES)
    (made.folder / "modules").mkdir()
    (made.folder / "modules" / "lamp.py").write_text(LAMP)
    (made.folder / "modules" / "arm.py").write_text("import no_such_motor")
    return made.start()


def tools(agent: Agent) -> dict[str, Any]:
    """What the kernel tells of them once they are imported."""
    return dict(until(lambda: (told := agent.ask("tools"))["scope"]["modules"] and told, "the modules are imported"))


def test_what_can_be_called_is_told_with_what_failed_and_which_rules_mean_nothing(agent: Agent) -> None:
    told = tools(agent)
    (module,) = told["scope"]["modules"]
    assert module["members"][0]["declaration"] == "def dim(level: float) -> float"
    assert told["scope"]["unavailable"] == [
        {"name": "arm", "reason": "ModuleNotFoundError: No module named 'no_such_motor' (arm.py:1)"}
    ]
    assert told["mistakes"] == ["the rule lamp.dimm names no tool: lamp has dim"]
    assert agent.stop() == 0
    assert "[tools] arm: ModuleNotFoundError" in agent.words()


def test_nothing_waits_and_what_does_not_wait_cannot_be_approved(agent: Agent) -> None:
    assert agent.ask("approvals") == []
    with pytest.raises(ApprovalUnknown):
        agent.ask("approve", id="kfdrtzw", by="ann")
    for wrong in ({}, {"id": 5}, {"id": "x", "deny": "yes"}, {"id": "x", "by": None}):
        with pytest.raises(CallInvalid):
            agent.ask("approve", **wrong)


def test_the_host_is_a_process_of_the_table_and_comes_back_when_killed(agent: Agent) -> None:
    tools(agent)
    agent.kill("tools")
    until(lambda: agent.restarts("tools") == 1, "it was started again")
    assert tools(agent)["scope"]["modules"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_host_ends_with_the_kernel_however_that_ends(agent: Agent, number: int) -> None:
    host = until(lambda: agent.pid("tools"), "the host runs")
    assert agent.process
    os.kill(agent.process.pid, number)
    agent.process.wait(40)
    until(lambda: not psutil.pid_exists(host) or psutil.Process(host).status() == psutil.STATUS_ZOMBIE, "it is gone")


def test_an_agent_without_modules_has_no_host(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    assert "tools" not in agent.ask("pids")
    assert agent.ask("tools") == {"scope": {"modules": [], "unavailable": []}, "mistakes": []}
