"""Children that end are started again; children of a dead parent are gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial

import msgspec
import psutil
import pytest

from runtime.kernel.process import Process, spawn
from runtime.kernel.supervisor import Row, Supervisor

LIMIT_S = 20.0
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def start(argv: list[str], ended: Callable[[int], None], said: Callable[[str], None], told: bytes = b"") -> Process:
    popen, output = spawn(argv, told=told)
    process = Process(popen, ended=ended, said=said)
    assert output is not None
    process.listen(output)
    return process


class World:
    def __init__(self) -> None:
        self.told: list[tuple[str, msgspec.Struct]] = []
        self.said: list[str] = []
        self.supervisor = Supervisor(tell=lambda type_, data: self.told.append((type_, data)), say=self.said.append)

    def add(self, name: str, argv: list[str], *, quick: bool = False, told: bytes = b"") -> None:
        self.supervisor.add(Row(name=name, start=partial(start, argv, told=told), quick=quick))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():  # noqa: ASYNC110 (conditions of any kind)
                await asyncio.sleep(0.01)

    def pid(self, name: str) -> int:
        return self.supervisor.pids()[name][0]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A supervisor whose children are gone when the test is over."""
    made = World()
    yield made
    for name in list(made.supervisor.children):
        await made.supervisor.end(name)


async def test_a_child_that_is_killed_is_started_again(world: World) -> None:
    world.add("child", SLEEPER)
    first = world.pid("child")
    os.kill(first, signal.SIGKILL)
    await world.until(lambda: world.pid("child") not in (0, first))
    assert world.supervisor.pids()["child"][1] == 1
    assert [type_ for type_, _ in world.told].count("kernel:process:started") == 2
    await world.supervisor.end("child")
    assert world.pid("child") == 0


async def test_a_reason_for_a_kill_is_told(world: World) -> None:
    world.add("child", SLEEPER)
    world.supervisor.kill("child", "it is silent")
    await world.until(lambda: any(type_ == "kernel:process:ended" for type_, _ in world.told))
    ended = next(data for type_, data in world.told if type_ == "kernel:process:ended")
    assert getattr(ended, "reason", "") == "it is silent"


async def test_a_childs_last_words_are_its_reason(world: World) -> None:
    world.add("child", [sys.executable, "-c", "import sys; print('no camera there'); sys.exit(2)"])
    await world.until(lambda: any("ended with 2" in line and "no camera there" in line for line in world.said))


async def test_a_child_reads_what_it_is_told(world: World) -> None:
    world.add("child", [sys.executable, "-c", "print(input())"], told=b"a secret", quick=True)
    await world.until(lambda: "[child] a secret" in world.said)


async def test_a_quick_child_that_ends_well_stays_ended(world: World) -> None:
    world.add("child", [sys.executable, "-c", "pass"], quick=True)
    await world.until(lambda: any(type_ == "kernel:process:ended" for type_, _ in world.told))
    assert world.supervisor.children["child"].timer is None


async def test_a_child_that_ignores_sigterm_is_killed(world: World) -> None:
    stubborn = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(600)"
    world.add("child", [sys.executable, "-uc", stubborn])
    await world.until(lambda: "[child] ready" in world.said)
    async with asyncio.timeout(LIMIT_S):
        await world.supervisor.end("child", grace_s=0.1)
    assert world.pid("child") == 0


async def test_a_program_that_isnt_there_is_tried_again_and_named(world: World) -> None:
    world.add("child", ["/nowhere/program"])
    await world.until(lambda: world.supervisor.children["child"].restarts >= 2)
    assert any("/nowhere/program" in line for line in world.said)


def test_children_die_with_a_killed_parent() -> None:
    parent = (
        "import time; from runtime.kernel.process import spawn;"
        "popen, _ = spawn(['sleep', '600']); print(popen.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
        assert child.wait(LIMIT_S) is None or not child.is_running()
