"""Every verb from everywhere, called well and badly, in the sandbox and inline: it does what docs/abi.md says.

One agent a mode tries all of it in one life; the tests look at what it found.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from capsule.errors import AxonError
from runtime.abi.entries import decode
from runtime.log.verify import verify

from .conftest import HERE, LIMIT_S, Agent, until

PAGE = (Path(__file__).parents[3] / "docs" / "abi.md").read_text(encoding="utf-8")
CONFIG = "".join(f'[engines.{role}]\nprovider = "scripted"\n' for role in ("main", "eyes", "ears"))
MODES = [
    pytest.param({}, id="sandboxed", marks=pytest.mark.sandbox),
    pytest.param({"inline": True}, id="inline"),
]


def _calls() -> Any:
    """The cognet's own table of calls."""
    spec = importlib.util.spec_from_file_location("axon_tests_calls", HERE / "cognets" / "everywhere" / "calls.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


calls = _calls()


class Found:
    """What one life of the agent has found."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        until(lambda: "all" in self._told(), "it has tried everything")
        self.restarts = agent.restarts("brain")
        self.exit_code = agent.stop()
        self.session = agent.session
        self.knowledge = list((agent.folder / "knowledge").rglob("*"))
        self.state = [path for path in (agent.folder / "data" / "state").rglob("*") if path.is_file()]
        said = re.findall(r"after (\w+): (.*)", agent.words())
        told = self._told()
        self.bad = {expression: (said, left) for expression, said, left in told.pop("bad")}
        self.edges = dict(told.pop("edges"))
        self.link = told.pop("link")
        self.places: dict[str, dict[str, str]] = {place: dict(rows) for place, rows in told.items()}
        self.places["after"] = {verb: code for code, verbs in said for verb in verbs.split()}

    def _told(self) -> dict[str, list[Any]]:
        """Rows by what they are about."""
        found: dict[str, list[Any]] = {}
        with suppress(AxonError, OSError):  # the log isn't there yet
            for row in self._agent.rows():
                if row.type == "cognet:output:text" and (data := decode(row.body, row.seq).data).channel == "told":  # type: ignore[union-attr]  # the type says so
                    about, rows = json.loads(data.content)  # type: ignore[union-attr]  # as above
                    found.setdefault(about, []).extend(rows)
        return found


@pytest.fixture(scope="module", params=MODES)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    agent = Agent(tmp_path_factory.mktemp("agents") / "agent", cognet="everywhere", config=CONFIG, sensors=False)
    process = agent.launch(drivers=False, **request.param)
    try:
        yield Found(agent)
    finally:
        process.kill()
        process.wait(LIMIT_S)
        agent.forget()


PLACES = {
    "top level": "the top level",
    "boot": "the loop",
    "wake hook": "the loop",
    "tick hook": "the loop",
    "loop": "the loop",
    "task": "the loop",
    "spawn": "the loop",
    "shutdown": "a `shutdown` hook",
    "timer": "a timer",
    "every": "a timer",
    "outlived": "a timer",
    "after": "after the shutdown",
}
"""Where verbs were called from, and how its row on the page begins."""


def documented(place: str) -> dict[str, str]:
    """What the page says of every verb there."""
    table = PAGE.split("## Where verbs work")[1].split("\n## ")[0]
    (row,) = [line for line in table.splitlines() if line.startswith(f"| {PLACES[place]}")]
    _, works, doesnt = (cell.strip() for cell in row.strip("|").split("|"))
    named = set(re.findall(r"`([\w.]+)`", works))
    assert named <= set(calls.GOOD), "the page names a verb that isn't there"
    if works.startswith("everything"):
        named = set(calls.GOOD) - named
    code = re.search(r"`([A-Z_]+)`", doesnt)
    said = {verb: "works" if verb in named else code and code[1] for verb in calls.GOOD}
    if place == "shutdown":
        said["run"] = f"result {said['run']}"
    if place == "top level":
        return {verb: word for verb, word in said.items() if "handles" not in calls.GOOD[verb]}  # nobody has one yet
    return said


@pytest.mark.parametrize("place", PLACES)
def test_verbs_work_where_the_page_says(found: Found, place: str) -> None:
    assert {verb: said for verb, said in found.places[place].items() if "wake." not in verb} == documented(place)


@pytest.mark.parametrize("place", ["wake hook", "tick hook", "loop", "task", "spawn"])
def test_an_open_wake_takes_work_and_its_end(found: Found, place: str) -> None:
    assert (found.places[place]["wake.spawn"], found.places[place]["wake.stop"]) == ("works", "works")


@pytest.mark.parametrize("place", ["timer", "every", "outlived", "shutdown"])
def test_a_wake_that_has_ended_takes_none(found: Found, place: str) -> None:
    assert found.places[place]["wake.spawn"] == "SYSCALL_OUTSIDE_WAKE"


def verb_of(expression: str) -> str:
    return expression.partition("(")[0]


@pytest.mark.parametrize("verb", dict.fromkeys(verb_of(expression) for expression, _ in calls.BAD))
def test_what_a_verb_does_not_take_is_its_documented_error_and_leaves_nothing(found: Found, verb: str) -> None:
    asked = {expression: (code, "nothing") for expression, code in calls.BAD if verb_of(expression) == verb}
    assert {expression: found.bad[expression] for expression in asked} == asked


def test_what_looks_odd_and_is_fine_works(found: Found) -> None:
    assert found.edges == dict.fromkeys(calls.EDGES, "works")


def test_the_kernel_refuses_what_a_brain_asks_past_its_own_checks(found: Found) -> None:
    """A hostile cognet has its link; ``run`` takes any list, and what is no block in it is a result."""
    refused = {"CALL_INVALID", "ENTRY_TYPE_UNKNOWN", "STORE_KEY_UNDECLARED", "KNOWLEDGE_ESCAPE", "ENGINE_ROLE_UNBOUND"}
    assert {call.partition("[")[0] for call, _, _ in found.link} == set(calls.VERBS_OF_THE_LINK)
    for call, said, left in found.link:
        assert left == "nothing", call
        assert said in refused or call.startswith("run["), call


def test_after_all_of_it_the_agent_is_whole(found: Found) -> None:
    assert found.exit_code == 0
    assert found.restarts == 0
    assert verify(found.session).ok
    assert [path.name for path in found.knowledge] == ["kept.md"]
    assert [path.name for path in found.state] == ["checkpoint.json"]


def test_every_error_that_a_verb_raises_stands_in_its_row() -> None:
    rows = dict(re.findall(r"^\| `(?:await )?(kernel\.[\w.]+|every|phase)\(.*?\| .*? \| (.*) \|$", PAGE, re.MULTILINE))
    for expression, code in calls.BAD:
        verb = "phase" if verb_of(expression) == "system" else verb_of(expression)
        if verb in rows and not code.startswith("result") and code != "CALL_INVALID":
            assert f"`{code}`" in rows[verb], f"{verb}: {code}"
