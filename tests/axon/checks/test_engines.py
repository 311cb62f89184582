"""The lines of ``axon doctor`` about roles."""

from __future__ import annotations

import pytest

from axon.checks.engines import engines
from hardware_profiles.profile import load
from runtime.config.agent import load_agent

PROFILE = load("generic-x86_64")
COGNET = """
format = 1
abi = "1"
mode = "invocation"
[engines.main]
type = "generate"
[engines.ears]
type = "stream"
optional = true
"""


@pytest.fixture
def lines(agent):
    (agent / "cognet").mkdir()
    (agent / "cognet/cognet.toml").write_text(COGNET)
    (agent / "cognet/main.py").write_text("")

    def look(text, *, running=False):
        (agent / "axon.toml").write_text(f'format = 1\n[agent]\nname = "robot"\ncognet = "cognet"\n{text}')
        return {check.name: check for check in engines(load_agent(agent, PROFILE), running=running)}

    return look


def test_a_role_is_shown_with_what_fills_it(lines):
    found = lines('[engines.main]\nprovider = "scripted"\n')
    assert (found["engine main"].state, found["engine main"].essential) == ("held", True)
    assert "generate by scripted" in found["engine main"].detail
    assert found["engine ears"].state == "held"
    assert "do without it" in found["engine ears"].detail


def test_a_required_role_that_nothing_fills_is_not_held(lines):
    found = lines("")
    assert (found["engine main"].state, found["engine main"].essential) == ("not held", True)


def test_what_the_running_kernel_says_counts(lines, kernel):
    role = {"role": "main", "available": False, "reason": "its process was ended by SIGILL"}

    async def table():
        return [role]

    kernel(engines=table)
    found = lines('[engines.main]\nprovider = "scripted"\n', running=True)
    assert (found["engine main"].state, "SIGILL" in found["engine main"].detail) == ("warning", True)


def test_a_cognet_that_cannot_be_read_has_no_lines(lines, agent):
    (agent / "cognet/cognet.toml").write_text("nonsense")
    assert lines("") == {}
