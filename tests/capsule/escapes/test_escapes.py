"""Every attempt of the corpus in a real guest: denied, and the host unharmed; without a sandbox some succeed.

A file of ``corpus/`` holds attempts in Python, each after a line ``# == what it tries``. An attempt has succeeded when
its last expression is true. ``{PID}`` and the like stand for things of the host that are there to be reached.
"""

from __future__ import annotations

import os
import re
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.kernel.brain_sandbox import knowledge_binds

pytestmark = pytest.mark.sandbox

REPO = Path(__file__).resolve().parents[3]
CORPUS = Path(__file__).with_name("corpus")
SECRET = "axon-escape-secret-77"
PRELUDE = """
import ctypes, os, platform, socket, sys
from capsule.sandbox import syscalls
N = syscalls.numbers(platform.machine(), *syscalls.ALLOWED, syscalls.CHECKED, syscalls.DENIED)
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    return libc.syscall(N[name], *arguments) >= 0
"""


def attempts() -> list[Any]:
    """Each with its name."""
    found = []
    for path in sorted(CORPUS.glob("*.txt")):
        _, *parts = re.split(r"^# == (.*)$", path.read_text(), flags=re.MULTILINE)
        for name, code in zip(parts[::2], parts[1::2], strict=True):
            found.append(pytest.param(code, id=f"{path.stem}: {name}"))
    return found


class Host:
    """What an escape could reach."""

    def __init__(self, folder: Path) -> None:
        self.agent = folder / "agent"
        for name in ("data", "modules", "knowledge"):
            (self.agent / name).mkdir(parents=True)
        self.files = {
            self.agent / "axon.toml": "secret = 1\n",
            self.agent / "data" / "canary": "alive",
            self.agent / "modules" / "arm.py": "arm = 1\n",
            self.agent / "knowledge" / "fact.md": "fact\n",
        }
        for path, text in self.files.items():
            path.write_text(text)
        os.chmod(self.agent / "axon.toml", 0o666)
        self.abstract = f"axon-escape-{os.getpid()}"
        self.unix = folder / "host.sock"
        local = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        self.listeners = [socket.create_server(("127.0.0.1", 0)), *local]
        self.listeners[1].bind(str(self.unix))
        self.listeners[2].bind(f"\0{self.abstract}")
        for listener in self.listeners[1:]:
            listener.listen()

    def filled(self, code: str) -> str:
        """The attempt, aimed at this host."""
        facts = {
            "AGENT": self.agent,
            "REPO": REPO,
            "PORT": self.listeners[0].getsockname()[1],
            "PID": os.getpid(),
            "SECRET": SECRET,
            "UNIX": self.unix,
            "ABSTRACT": self.abstract,
        }
        for name, fact in facts.items():
            code = code.replace(f"{{{name}}}", str(fact))
        return PRELUDE + code

    def is_unharmed(self) -> bool:
        """Files as they were, nobody came."""
        there = {path: path.read_text() for path in self.agent.rglob("*") if path.is_file()}
        came, _, _ = select.select(self.listeners, [], [], 0)
        return there == self.files and not came

    def close(self) -> None:
        """Close what listens."""
        for listener in self.listeners:
            listener.close()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("AXON_ESCAPE", SECRET)
    made = Host(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("code", attempts())
async def test_every_attempt_is_denied(make_capsule, host, code):
    capsule = make_capsule(binds=knowledge_binds(host.agent))
    result = await capsule.one(host.filled(code), timeout_s=15)
    assert not result.ok or not result.value, result
    assert host.is_unharmed()
    assert (await capsule.one("1 + 1")).value == 2


def test_the_corpus_is_large_enough():
    assert len(attempts()) >= 60


REACHABLE = ("os.system starts", "the host's loopback$", "agent's configuration", "os.fork", "processes are listed")
SUCCEEDING = [one for one in attempts() if any(re.search(part, str(one.id)) for part in REACHABLE)]


@pytest.mark.parametrize("code", SUCCEEDING)
async def test_without_a_sandbox_such_attempts_succeed(make_capsule, host, code):
    """The corpus can succeed: what denies it is the sandbox."""
    result = await make_capsule(sandboxed=False).one(host.filled(code), timeout_s=15)
    assert result.value, result


def test_there_are_such_attempts():
    assert len(SUCCEEDING) == len(REACHABLE)
