"""Nothing blocks the event loops of kernel and brain: no file, no import, no database call, no sync, no sleep."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest
import uvloop

import cognets
from runtime.brain.brain import run_brain
from runtime.kernel.console import Console
from runtime.kernel.kernel import Kernel
from runtime.kernel.setup import Asked, Setup
from runtime.mqtt.broker import plan

EVENTS = (
    "open",
    "import",
    "os.listdir",
    "os.scandir",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "sqlite3.connect",
    "time.sleep",
)
ALLOWED = (
    "in _reap",  # a child has ended: it is collected, not waited for
    "in spawn",  # starting a child is a start or a restart, not the rhythm
    "in launch",
)
CONFIG = """
format = 1
[agent]
name = "hot"
cognet = "reflex"
[[sensors]]
driver = "camera"
source = "synthetic"
fps = 30
[[sensors]]
driver = "host"
fps = 5
"""


class Watch:
    """Notes what the loop's thread does that blocks, while it is armed."""

    def __init__(self) -> None:
        self.thread: int | None = None
        self.found: list[str] = []

    def note(self, what: str) -> None:
        if threading.get_ident() != self.thread:
            return
        stack: list[str] = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and len(stack) < 20:
            stack.append(f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
            frame = frame.f_back
        if not any(place.endswith(ALLOWED) for place in stack):
            self.found.append("\n  ".join([what, *stack]))


_watch = Watch()


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _watch.thread is not None and event in EVENTS:
        _watch.note(f"{event} {args!r:.200}")


sys.addaudithook(_hook)


@pytest.fixture
def hot_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Arm it with ``watch.thread``; the database, syncs and sleeps tell no auditor, so they are wrapped here."""

    def trace(cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        _watch.note(f"SQL {sql:.80}")
        return True

    def connected(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(connected)
    for module, name in ((time, "sleep"), (os, "fsync"), (os, "fdatasync"), (os, "waitpid")):
        original = getattr(module, name)

        def wrapped(*args: Any, original: Any = original, name: str = name, **named: Any) -> Any:
            _watch.note(name)
            return original(*args, **named)

        monkeypatch.setattr(module, name, wrapped)
    _watch.found.clear()
    yield _watch
    _watch.thread = None
    apsw.connection_hooks.remove(connected)


def run_kernel(folder: Path, watch: Watch, *, inline: bool, seconds: float) -> Kernel:
    (folder / "axon.toml").write_text(CONFIG)
    setup = Setup(
        Asked(folder=folder, sandbox=False, inline=inline, volatile_data=True),
        shipped_cognets=Path(cognets.__file__).parent,
    )
    console = Console()

    async def brain(link: Any, pages: Any, path: str) -> None:
        await run_brain(link, pages, cognet_path=path)

    async def run() -> Kernel:
        kernel = Kernel(
            setup, plan("private", folder / "broker"), console=console, inline_brain=brain if inline else None
        )
        running = asyncio.ensure_future(kernel.run())
        async with asyncio.timeout(40):
            while kernel.statistics.wakes.admitted < 10:  # noqa: ASYNC110 (it waits for a rhythm, not for an event)
                await asyncio.sleep(0.05)
        watch.thread = threading.get_ident()
        await asyncio.sleep(seconds)
        watch.thread = None
        kernel.stop()
        await running
        return kernel

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        kernel = runner.run(run())
    console.close()
    return kernel


@pytest.mark.parametrize("inline", [False, True], ids=["kernel", "kernel-and-brain"])
def test_the_rover_runs_without_blocking_its_loop(tmp_path: Path, hot_path: Watch, inline: bool) -> None:
    kernel = run_kernel(tmp_path, hot_path, inline=inline, seconds=4.0)
    assert not hot_path.found, "\n\n".join(hot_path.found[:3])
    assert kernel.statistics.commits > 0
    assert kernel.ingest.counts["camera"].committed > 0


def test_the_fixture_catches_what_it_should(tmp_path: Path, hot_path: Watch) -> None:
    (tmp_path / "x").touch()
    hot_path.thread = threading.get_ident()
    (tmp_path / "x").read_bytes()
    time.sleep(0)
    connection = apsw.Connection(":memory:")
    connection.execute("SELECT 1").fetchall()
    hot_path.thread = None
    connection.close()
    assert {line.split()[0] for line in hot_path.found} >= {"open", "sleep", "SQL"}


def test_the_watch_sees_no_other_thread(tmp_path: Path, hot_path: Watch) -> None:
    (tmp_path / "x").touch()
    hot_path.thread = threading.get_ident()
    reader = threading.Thread(target=(tmp_path / "x").read_bytes)
    reader.start()
    reader.join()
    hot_path.thread = None
    assert not hot_path.found
