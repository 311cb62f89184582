"""``axon ask``: real kernels with zero and the scripted engine."""

from __future__ import annotations

import json
import os
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from axon.client import ask as ask_kernel
from axon.commands import ask as command
from axon.headless import headless
from axon.options import RunOptions, kernel_argv
from runtime.abi.errors import AgentNotRunning
from runtime.log.reader import LogReader

WAIT_S = 40.0
ZERO = """
format = 1
[agent]
name = "zero"
cognet = "zero"
[engines.main]
provider = "scripted"
"""
HANG = """
format = 1
[[rules]]
reply = "a b"
pace = {piece_ms = 600000}
"""


@pytest.fixture(autouse=True)
def _anywhere(monkeypatch):
    """Kernels without a sandbox, on whatever file system the tests have."""
    monkeypatch.setattr(command, "headless", partial(headless, sandbox=False, volatile_data=True))


@pytest.fixture
def zero(agent):
    (agent / "axon.toml").write_text(ZERO)
    return agent


@pytest.fixture
def running(zero):
    """A kernel of zero that somebody runs."""
    options = RunOptions(folder=str(zero), status=False, sandbox=False, volatile_data=True, drivers=False)
    process = subprocess.Popen(kernel_argv(options), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            if ask_kernel(zero, "summary")["brain"] == "up":
                break
        except AgentNotRunning:
            pass
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait(WAIT_S)


def rows(folder: Path) -> list[str]:
    session = folder / "data" / "sessions" / (folder / "data" / "session").read_text()
    return [row.type for row in LogReader(session).rows()]


def test_words_an_action_its_result_and_done(axon, zero):
    ended = axon("ask", zero, "what is 6*7? use python")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == "I'll let Python work that out.\n    > 6*7\n    = 42\nThe answer is 42.\ndone\n"


def test_as_json_it_is_one_object(axon, zero):
    ended = axon("ask", zero, "what is 6*7? use python", "--json")
    answer = json.loads(ended.out)
    assert answer["text"] == "I'll let Python work that out.\nThe answer is 42.\n"
    assert [(action["code"].strip(), action["value"]) for action in answer["actions"]] == [("6*7", 42)]
    assert (answer["settled"], answer["error"]) == (True, None)


def test_the_session_goes_on_from_question_to_question(axon, zero):
    assert axon("ask", zero, "hello").status == 0
    assert axon("ask", zero, "hello again").status == 0
    assert rows(zero).count("cognet:stimulus:text") == 2


def test_a_kernel_that_runs_is_asked_and_goes_on(axon, zero, running):
    ended = axon("ask", zero, "hello")
    assert ended.out == "I am a script of a few rules; I heard: hello\ndone\n"
    assert running.poll() is None
    assert axon("ask", zero, "hello", "--engine", "scripted").status == 0


def test_a_wake_that_fails_is_a_failure(axon, zero):
    (zero / "s.toml").write_text('format = 1\n[[rules]]\nwhen = "never"\nreply = "x"\n')
    (zero / "axon.toml").write_text(ZERO + 'model = "s.toml"\n')
    ended = axon("ask", zero, "hello")
    assert ended.status == 1
    assert "NO_ANSWER" in ended.err
    assert "ENGINE_FAILED" in ended.err


def test_an_answer_that_does_not_come_in_time_is_a_failure(axon, zero):
    (zero / "s.toml").write_text(HANG)
    (zero / "axon.toml").write_text(ZERO + 'model = "s.toml"\n')
    ended = axon("ask", zero, "hello", "--timeout", "0.5")
    assert ended.status == 1
    assert "didn't settle in 0.5 s" in ended.err


def test_engine_fills_every_role_whatever_the_agent_says(axon, zero):
    (zero / "axon.toml").write_text(ZERO.replace('[engines.main]\nprovider = "scripted"', ""))
    refused = axon("ask", zero, "hello")
    assert refused.status == 1
    assert "ENGINE_ROLE_UNBOUND" in refused.err
    assert not (zero / "data").exists()
    assert axon("ask", zero, "hello", "--engine", "scripted").status == 0


def test_a_continuous_cognet_cannot_be_asked(axon, agent):
    ended = axon("ask", agent, "hello")
    assert ended.status == 1
    assert "continuous" in ended.err
    assert not (agent / "data").exists()


def test_wrong_usage(axon, zero, tmp_path):
    assert axon("ask", zero, "hello", "--engine", "sybil").status == 2
    assert "AGENT_NOT_FOUND" in axon("ask", tmp_path / "nobody", "hello").err
    assert not os.path.exists(zero / "data")
