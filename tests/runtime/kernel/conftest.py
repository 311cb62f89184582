"""Real agents: the kernel's own process with its real children, started, asked, killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from axon.client import ask
from runtime.abi.errors import AgentNotRunning
from runtime.abi.link import Row
from runtime.log.reader import LogReader

LIMIT_S = 40.0
HERE = Path(__file__).parent
SENSORS = """
[[sensors]]
driver = "camera"
source = "synthetic"
fps = 10

[[sensors]]
driver = "host"
fps = 5
"""


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for something that must come; the bound is generous, since machines are busy."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"it never happened: {what}")


class Agent:
    """One agent's folder, and its kernel while it runs."""

    def __init__(self, folder: Path, *, cognet: str, config: str, sensors: bool) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None
        folder.mkdir()
        own = HERE / "cognets" / cognet
        if own.is_dir():
            shutil.copytree(own, folder / "cognet")
        name = "cognet" if own.is_dir() else cognet
        text = f'format = 1\n[agent]\nname = "test"\ncognet = "{name}"\n{config}\n{SENSORS if sensors else ""}'
        (folder / "axon.toml").write_text(text)

    def start(self, **options: Any) -> Agent:
        """Start the kernel and wait until its brain wakes."""
        self.launch(**options)
        until(lambda: self._awake(), "the brain wakes")
        return self

    def launch(self, **options: Any) -> subprocess.Popen[str]:
        """Start the kernel and don't wait."""
        self.forget()
        asked = {"folder": str(self.folder), "status": False, "volatile_data": True, **options}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "axon.run", json.dumps(asked)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return self.process

    def ask(self, verb: str, **args: Any) -> Any:
        return ask(self.folder, verb, **args)

    def summary(self) -> dict[str, Any]:
        value: dict[str, Any] = self.ask("summary")
        return value

    def _awake(self) -> bool:
        assert self.process
        if self.process.poll() is not None:
            raise AssertionError(f"the kernel ended: {self.words()}")
        try:
            return bool(self.summary()["boot"]["first_wake_ms"])
        except AgentNotRunning:
            return False

    def forget(self) -> None:
        """Let go of a kernel that has ended."""
        if self.process and self.process.stdout and self.process.poll() is not None:
            self.process.stdout.close()

    def restarts(self, name: str) -> int:
        """How often a process was started again."""
        processes = self.summary()["processes"]
        return int(processes[name]["restarts"]) if name in processes else 0

    def committed(self, channel: str) -> int:
        """Stimuli of a channel that are on the disk since counting began."""
        stimuli = self.summary()["stimuli"]
        return int(stimuli[channel]["committed"]) if channel in stimuli else 0

    def words(self) -> str:
        """All that the kernel said; call it when it has ended."""
        assert self.process
        assert self.process.stdout
        return self.process.stdout.read()

    def pid(self, name: str) -> int:
        """The pid of a living process by its role, 0 while it is down; the brain's is the guest's own."""
        pids: dict[str, int] = self.ask("pids")
        return pids[name]

    def kill(self, name: str) -> None:
        """SIGKILL one process, the kernel included."""
        assert self.process
        if name == "kernel":
            self.process.kill()
            self.process.wait(LIMIT_S)
            return
        os.kill(until(lambda: self.pid(name), f"{name} is there"), signal.SIGKILL)

    def stop(self) -> int:
        """End it in order; returns the exit code."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_S)

    def rows(self) -> list[Row]:
        """The session's log as it lies on the disk."""
        return list(LogReader(self.session).rows())

    @property
    def session(self) -> Path:
        return self.folder / "data" / "sessions" / (self.folder / "data" / "session").read_text()


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Makes agents that are gone, with all their processes, when the test is over."""
    made: list[Agent] = []

    def make(cognet: str = "mirror", *, config: str = "", sensors: bool = True) -> Agent:
        agent = Agent(tmp_path / f"agent-{len(made)}", cognet=cognet, config=config, sensors=sensors)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        if agent.process and agent.process.poll() is None:
            agent.process.kill()
        if agent.process:
            agent.process.wait(LIMIT_S)
            agent.forget()


@pytest.fixture(params=["private", "embedded"])
def broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both private brokers; without mosquitto on the machine its half is skipped by name."""
    if request.param == "private" and not (shutil.which("mosquitto") or os.path.exists("/usr/sbin/mosquitto")):
        pytest.skip("mosquitto is missing: sudo apt install mosquitto")
    return str(request.param)
