"""A command's own kernel: real ones, started and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from axon.client import Control, ask, running
from axon.headless import headless
from axon.options import RunOptions, kernel_argv
from runtime.abi.errors import AgentNotRunning, CognetInvalid
from runtime.log.reader import LogReader

WAIT_S = 40.0
Run = Callable[..., subprocess.Popen[bytes]]


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def answers(folder: Path) -> bool:
    try:
        return bool(ask(folder, "pids"))
    except AgentNotRunning:
        return False


@pytest.fixture
def run(agent: Path) -> Iterator[Run]:
    """Starts a kernel as ``axon run`` does, and waits until it answers."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**options: Any) -> subprocess.Popen[bytes]:
        asked = RunOptions(folder=str(agent), status=False, sandbox=False, volatile_data=True, **options)
        started.append(subprocess.Popen(kernel_argv(asked), stderr=subprocess.DEVNULL))
        until(lambda: answers(agent))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(WAIT_S)


def serve(agent: Path, *, brain: bool = False) -> Any:
    return headless(agent, brain=brain, sandbox=False, volatile_data=True)


def test_the_kernel_that_runs_is_used_and_goes_on(agent: Path, run: Run) -> None:
    process = run(drivers=False, brain=False)
    with serve(agent) as control:
        assert control.run.pid == process.pid
    assert answers(agent)


def test_one_without_drivers_and_brain_is_started_and_ended_in_order(agent: Path) -> None:
    (agent / "axon.toml").write_text((agent / "axon.toml").read_text() + '[[sensors]]\ndriver = "host"\n')
    with serve(agent) as control:
        pids = control.ask("pids")
        assert not {"brain", "broker", "host"} & pids.keys()
        assert running(agent).command == os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pids["kernel"], 0)
    with pytest.raises(AgentNotRunning):
        running(agent)
    boots = [event for event in LogReader(session(agent)).telemetry() if event.type == "kernel:shutdown"]
    assert len(boots) == 1


def test_asked_for_a_brain_it_yields_when_the_cognet_is_loaded(agent: Path) -> None:
    with serve(agent, brain=True) as control:
        assert control.ask("summary")["brain"] == "up"


def test_a_cognet_that_cant_be_loaded_is_told(agent: Path) -> None:
    (agent / "axon.toml").write_text('format = 1\n[agent]\nname = "robot"\ncognet = "cognet"\n')
    (agent / "cognet").mkdir()
    (agent / "cognet/cognet.toml").write_text('format = 1\nabi = "1"\nmode = "continuous"\n')
    (agent / "cognet/main.py").write_text("1 / 0\n")
    with pytest.raises(CognetInvalid, match="ZeroDivisionError"), serve(agent, brain=True):
        pass
    assert not answers(agent)


def test_a_kernel_that_cant_start_says_why(agent: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(AgentNotRunning, match="couldn't start"),
        headless(agent, brain=False, sandbox=False, volatile_data=True, session="nothing"),
    ):
        pass
    assert "SESSION_NOT_FOUND" in capfd.readouterr().err


def test_a_kernel_of_another_command_is_waited_for(agent: Path, run: Run) -> None:
    process = run(drivers=False, brain=False, command=os.getpid())
    line = Control(agent)
    process.send_signal(signal.SIGTERM)
    with serve(agent) as control:
        assert control.run.pid != process.pid
    line.close()


def test_it_ends_when_its_command_is_killed(agent: Path) -> None:
    code = f"""
from pathlib import Path
from axon.headless import headless
with headless(Path({str(agent)!r}), brain=False, sandbox=False, volatile_data=True) as control:
    print(control.run.pid, flush=True)
    control.rest(60)
"""
    command = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert command.stdout
    pid = int(command.stdout.readline())
    command.kill()
    command.wait(WAIT_S)
    command.stdout.close()
    until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())
    assert not (agent / "data/run.json").exists()


def session(agent: Path) -> Path:
    return agent / "data/sessions" / (agent / "data/session").read_text()
