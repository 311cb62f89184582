"""Every attempt of the corpus in a real guest: denied, and the host unharmed; without a sandbox many succeed.

A file of ``corpus/`` holds attempts in Python, each after a line ``# == what it tries``; with ``# =+`` where it does no
harm and succeeds without a sandbox, which is shown. An attempt has succeeded when its last expression is true. It is
denied when that is false, when the system refuses it, or when it costs the process; one that fails in any other way
tries nothing, and is a defect here. ``{PID}`` and the like stand for things of the host that are there to be reached.
"""

from __future__ import annotations

import os
import re
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from capsule.result import RunResult
from runtime.kernel.brain_sandbox import knowledge_binds

pytestmark = [pytest.mark.sandbox, pytest.mark.asyncio(loop_scope="module")]

REPO = Path(__file__).resolve().parents[3]
CORPUS = Path(__file__).with_name("corpus")
REFUSED = re.compile(
    r"(PermissionError|FileNotFoundError|ProcessLookupError|NotADirectoryError|socket\.gaierror): |OSError: \[Errno|"
    r"OSError: out of pty|the capsule's process ended with"
)
"""How an attempt fails that was denied."""
SECRET = "axon-escape-secret-77"
IN_A_PROCESS_OF_ITS_OWN = ("descriptors",)
PRELUDE = """
import ctypes, errno, os, platform, socket, sys
from capsule.sandbox import syscalls
N = syscalls.numbers(platform.machine(), *syscalls.ALLOWED, syscalls.CHECKED, syscalls.DENIED)
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if libc.syscall(N[name], *arguments) >= 0:
        return True
    if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        raise AssertionError(f"the call got through: {errno.errorcode[ctypes.get_errno()]}")
    return False
def born(pid):
    if pid == 0:
        os._exit(0)
    return pid > 0
"""


class Attempt(NamedTuple):
    """One of the corpus."""

    name: str
    code: str
    succeeds: bool


def attempts() -> list[Attempt]:
    """All of them."""
    found = []
    for path in sorted(CORPUS.glob("*.txt")):
        _, *parts = re.split(r"^# =([=+]) (.*)$", path.read_text(), flags=re.MULTILINE)
        for mark, name, code in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            found.append(Attempt(f"{path.stem}: {name}", code, mark == "+"))
    return found


class Host:
    """What an escape could reach."""

    def __init__(self, folder: Path) -> None:
        self.agent = folder / "agent"
        self._name = f"axon-escape-{folder.name}-{os.getpid()}"
        for name in ("data", "modules", "knowledge"):
            (self.agent / name).mkdir(parents=True)
        self.files = {
            self.agent / "axon.toml": "secret = 1\n",
            self.agent / "data" / "canary": "alive",
            self.agent / "modules" / "arm.py": "arm = 1\n",
            self.agent / "knowledge" / "fact.md": "fact\n",
            self._left("/tmp"): "left",
            self._left("/dev/shm"): "left",
        }
        self.restore()
        self.unix, self.datagram = folder / "host.sock", folder / "datagram.sock"
        self.listeners = [
            socket.create_server(("127.0.0.1", 0)),
            *(socket.socket(socket.AF_UNIX) for _ in range(2)),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        ]
        port = self.listeners[0].getsockname()[1]
        for listener, address in zip(
            self.listeners[1:],
            [str(self.unix), f"\0{self._name}", str(self.datagram), ("127.0.0.1", port)],
            strict=True,
        ):
            listener.bind(address)
        for listener in self.listeners[1:3]:
            listener.listen()
        self.facts = {
            "AGENT": self.agent,
            "REPO": REPO,
            "HOME": Path.home(),
            "PORT": port,
            "PID": os.getpid(),
            "GROUP": os.getpgrp(),
            "UNIX": self.unix,
            "DATAGRAM": self.datagram,
            "ABSTRACT": self._name,
            "SECRET": SECRET,
            "LEFT": self._left("/tmp"),
            "SHARED": self._left("/dev/shm"),
        }

    def _left(self, folder: str) -> Path:
        return Path(folder, self._name)

    def restore(self) -> None:
        """Every file as it was."""
        for path, text in self.files.items():
            path.write_text(text)

    def filled(self, code: str) -> str:
        """The attempt, aimed at this host."""
        for name, fact in self.facts.items():
            code = code.replace(f"{{{name}}}", str(fact))
        return PRELUDE + code

    def is_unharmed(self) -> bool:
        """Files as they were, nobody came."""
        there = {path for path in self.agent.rglob("*") if path.is_file()}
        kept = all(path.exists() and path.read_text() == text for path, text in self.files.items())
        came, _, _ = select.select(self.listeners, [], [], 0)
        return kept and not there - self.files.keys() and not came

    def close(self) -> None:
        """Close what listens."""
        for listener in self.listeners:
            listener.close()
        for folder in ("/tmp", "/dev/shm"):
            self._left(folder).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def make_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Host]]:
    """Hosts for the whole module."""
    made: list[Host] = []

    def make(name: str) -> Host:
        made.append(Host(tmp_path_factory.mktemp(name)))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXON_ESCAPE", SECRET)
        yield make
    for host in made:
        host.close()


@pytest.fixture(scope="module")
def host(make_host: Callable[[str], Host]) -> Host:
    """One that nothing may harm."""
    return make_host("host")


@pytest.fixture(scope="module")
def prey(make_host: Callable[[str], Host]) -> Host:
    """One for attempts that succeed."""
    return make_host("prey")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guest(bench: Callable[..., Any], host: Host) -> AsyncIterator[Any]:
    """One capsule for all attempts; what they cost it is replaced."""
    made = bench(binds=knowledge_binds(host.agent))
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def free(bench: Callable[..., Any]) -> AsyncIterator[Any]:
    """One without a sandbox."""
    made = bench(sandboxed=False)
    yield made
    await made.close()


def is_denied(result: RunResult) -> bool:
    """Whether it came to nothing because something refused it."""
    if result.ok:
        return result.value_error is None and not result.value
    assert result.error
    return REFUSED.match(result.error.message) is not None


@pytest.mark.parametrize("attempt", attempts(), ids=lambda attempt: attempt.name)
async def test_every_attempt_is_denied(guest: Any, host: Host, attempt: Attempt) -> None:
    if any(words in attempt.name for words in IN_A_PROCESS_OF_ITS_OWN):
        await guest.one("import os; os._exit(0)")
    result = await guest.one(host.filled(attempt.code))
    assert is_denied(result), result
    assert host.is_unharmed()
    assert (await guest.one("1 + 1")).value == 2


@pytest.mark.parametrize("attempt", [one for one in attempts() if one.succeeds], ids=lambda attempt: attempt.name)
async def test_without_a_sandbox_such_attempts_succeed(free: Any, prey: Host, attempt: Attempt) -> None:
    """What denies them is the sandbox."""
    prey.restore()
    result = await free.one(prey.filled(attempt.code))
    assert result.value is True, result


async def test_harm_is_noticed(make_host: Callable[[str], Host]) -> None:
    victim = make_host("victim")
    assert victim.is_unharmed()
    (victim.agent / "data" / "escaped").write_text("x")
    assert not victim.is_unharmed()
    (victim.agent / "data" / "escaped").unlink()
    with socket.create_connection(("127.0.0.1", victim.facts["PORT"])):
        assert not victim.is_unharmed()


async def test_the_corpus_is_large_enough() -> None:
    assert len({attempt.name for attempt in attempts()}) == len(attempts()) >= 60
