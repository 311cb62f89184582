import json

import pytest

from axon.commands import approve
from axon.person import person
from runtime.abi.clock import wall_ms
from runtime.abi.errors import ApprovalUnknown

ONE = {
    "id": "kfdrtzw",
    "name": "door.unlock",
    "arguments": {"door": "front\x1b[2J"},
    "rule": "door.*",
    "block": "b",
    "ask_s": 30.0,
}


@pytest.fixture
def door(kernel):
    """A kernel in which one call waits; the answers that were given."""
    answers = []
    waiting = [{**ONE, "asked_ms": wall_ms()}]

    async def approvals() -> list[dict[str, object]]:
        return waiting

    async def approve(id: str, deny: bool, by: str) -> dict[str, object]:  # noqa: A002 - as the request names it
        if not waiting or id != waiting[0]["id"]:
            raise ApprovalUnknown(f"no call waits for {id!r}")
        answers.append((id, deny, by))
        return waiting.pop()

    kernel(approvals=approvals, approve=approve)
    return answers


def test_a_call_is_approved_by_its_id(axon, agent, door):
    ended = axon("approve", agent, "kfdrtzw")
    assert (ended.status, ended.out) == (0, "approved: door.unlock(door='front\\x1b[2J')\n")
    assert door == [("kfdrtzw", False, person())]


def test_a_call_is_denied(axon, agent, door):
    assert axon("approve", agent, "kfdrtzw", "--deny").out.startswith("denied: door.unlock")
    assert door == [("kfdrtzw", True, person())]


def test_what_does_not_wait_fails(axon, agent, door):
    ended = axon("approve", agent, "nothing")
    assert ended.status == 1
    assert ended.err.startswith("APPROVAL_UNKNOWN: ")


@pytest.mark.parametrize("words", [[], ["--list"]])
def test_without_a_terminal_what_waits_is_listed_and_nothing_is_answered(axon, agent, door, words):
    ended = axon("approve", agent, *words)
    assert ended.status == 0
    assert ended.out.startswith("kfdrtzw  door.unlock(door='front\\x1b[2J')  (rule door.*, ")
    assert door == []


def test_programs_get_json(axon, agent, door):
    assert json.loads(axon("approve", agent, "--json").out)[0]["id"] == "kfdrtzw"
    assert json.loads(axon("approve", agent, "kfdrtzw", "--json").out)["name"] == "door.unlock"
    assert json.loads(axon("approve", agent, "--list", "--json").out) == []


def test_when_nothing_waits_that_is_said(axon, agent, door):
    axon("approve", agent, "kfdrtzw")
    assert axon("approve", agent).out == "nothing waits\n"


@pytest.mark.parametrize(
    ("word", "answers"),
    [("y", [("kfdrtzw", False)]), ("No", [("kfdrtzw", True)]), ("", []), ("yess", []), ("later", [])],
)
def test_on_a_terminal_each_is_asked_about(axon, agent, door, monkeypatch, word, answers):
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(approve.sys, "stdin", Terminal())
    monkeypatch.setattr(approve.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(approve.typer, "prompt", lambda *_args, **options: word or options["default"])
    axon("approve", agent)
    assert [(id_, deny) for id_, deny, _ in door] == answers


@pytest.mark.parametrize("words", [["--deny"], ["kfdrtzw", "--list"]])
def test_what_means_nothing_is_wrong_usage(axon, agent, door, words):
    assert axon("approve", agent, *words).status == 2


def test_without_a_kernel_nothing_can_be_approved(axon, agent):
    ended = axon("approve", agent, "kfdrtzw")
    assert ended.status == 1
    assert ended.err.startswith("AGENT_NOT_RUNNING: ")
