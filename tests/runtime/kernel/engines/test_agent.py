"""A real agent whose brain asks every kind of engine, in its sandbox and inside the kernel's process."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.entries import decode
from runtime.abi.errors import AgentNotRunning
from runtime.log.reader import LogReader

ENGINES = "".join(f'[engines.{role}]\nprovider = "scripted"\n' for role in ("main", "eyes", "ears"))


def _agents() -> Any:
    """The fixtures' module of the folder above, once under one name: folders of tests are no packages."""
    name = "axon_tests_agents"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "conftest.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


until = _agents().until


def told(agent: Any) -> list[str]:
    entries = [decode(row.body, row.seq) for row in agent.rows()]
    return [entry.data.content for entry in entries if entry.type == "cognet:output:text"]  # type: ignore[union-attr]  # the type says so


def is_up(agent: Any) -> bool:
    try:
        return bool(agent.summary()["brain"] == "up")
    except AgentNotRunning:
        return False


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="sandboxed", marks=pytest.mark.sandbox),
        pytest.param({"inline": True}, id="inline"),
    ],
)
def test_every_kind_of_engine_answers(make_agent, options):
    agent = make_agent("asker", config=ENGINES, sensors=False)
    agent.launch(drivers=False, **options)
    until(lambda: is_up(agent), "the brain is up")
    agent.ask("say", text="go")
    until(lambda: len(told(agent)) >= 5, "it has told everything")
    assert told(agent) == [
        "main I am a script of a few rules; I heard: hello 5 23",
        'eyes {"seen":1}',
        "ears ['one.', 'two!']",
        "nose False ENGINE_ROLE_UNBOUND",
        "facts 4096 4 ('text',) True",
    ]
    assert agent.stop() == 0
    assert told(agent)[-1] == "late refused"
    kinds = [event.type for event in LogReader(agent.session).telemetry(types=["kernel:engine:*"])]
    assert (kinds.count("kernel:engine:start"), kinds.count("kernel:engine:complete")) == (3, 3)
