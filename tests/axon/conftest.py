import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from runtime.abi.observe import RunFile
from runtime.abi.summary import Boot, ChannelCounts, ProcessUse, Spread, Summary, Wakes
from runtime.kernel.control import Control, Verb

WAIT_S = 20


class Kernel:
    """The kernel's real control socket, with verbs of the test's own, on a loop in another thread."""

    def __init__(self, folder: Path, socket: Path, verbs: dict[str, Verb]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._control = Control(verbs, forsaken=("exec",))
        self._do(self._control.listen(socket))
        (folder / "data").mkdir(exist_ok=True)
        run = RunFile(
            pid=1, agent="rover", session="s", boot_id="b", control=str(socket), bus="", broker="mqtt://127.0.0.1:1"
        )
        (folder / "data/run.json").write_bytes(msgspec.json.encode(run))

    def _do(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._do(self._control.close())
        self._do(self._settle())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    async def _settle(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def make_summary(**changes: Any) -> Summary:
    """A run of ten seconds, changed as the test asks; ``wakes`` and ``stimuli`` are plain counts."""
    wakes = changes.pop("wakes", 300)
    stimuli = changes.pop("stimuli", {"camera": 290, "microphone": 50, "host.cpu": 20})
    values = {
        "agent": "rover",
        "session": "019b0000-0000-7000-8000-000000000000",
        "seconds": 10.0,
        "wakes": Wakes(
            admitted=wakes,
            completed=wakes,
            failed=0,
            interrupted=0,
            missed=0,
            max_overlap=3,
            hz=30.0,
            late_ms=Spread(p50=0.2, p99=0.9, max=2.5),
        ),
        "stimuli": {name: ChannelCounts(received=count, committed=count) for name, count in stimuli.items()},
        "commit_ms": Spread(p50=0.4, p99=3.1, max=8.0),
        "commits": 400,
        "entries": 700,
        "last_seq": 12_345,
        "boot": Boot(
            boot_id="b", clean_before=True, replayed=0, replay_ms=1.0, brain_folded=0, first_wake_ms=300.0
        ),
        "processes": {name: ProcessUse(rss_mb=40.0, cpu_percent=5.0, restarts=0) for name in ("kernel", "brain")},
        "media_mb": 120.0,
        "sandboxed": True,
        "storage": "ok",
        "stopped": False,
        "refused": {},
    } | changes  # fmt: skip
    return Summary(**values)


@pytest.fixture
def summary() -> Callable[..., Summary]:
    """Makes the figures of a run: ``summary(commits=3)``."""
    return make_summary


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "robot"
    folder.mkdir()
    (folder / "axon.toml").write_text('format = 1\n[agent]\nname = "robot"\n')
    return folder


@pytest.fixture
def kernel(agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Kernel]]:
    """Starts a kernel that answers the verbs it is given: ``kernel(say=...)``."""
    started: list[Kernel] = []

    def start(**verbs: Verb) -> Kernel:
        started.append(Kernel(agent, tmp_path_factory.mktemp("s") / "control", verbs))
        return started[-1]

    yield start
    for one in started:
        one.close()


class Ended(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def axon(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Runs the command line in this process: ``axon("say", folder, "hello")``."""
    from axon.cli import main

    def run(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["axon", *map(str, words)])
        capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        return Ended(status, *capsys.readouterr())

    return run
