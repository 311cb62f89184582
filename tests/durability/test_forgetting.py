"""The unmodified product on a disk that forgets what wasn't synced: the log in a process, then the whole kernel.

Every cycle runs it, notes what it acknowledged, takes the power away, starts it again, and looks: all that was
acknowledged is there, and the log is whole. The controls are worlds in which that must fail.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from capsule.errors import AxonError
from runtime.abi.entries import decode
from runtime.durable.files import make_folder, write_durable
from runtime.kernel.stop import StopLatch
from runtime.log.reader import LogReader
from runtime.log.verify import verify

from ..runtime.kernel.conftest import LIMIT_S, until
from .conftest import HERE, Victim
from .disk import CUTS
from .mount import Mount
from .writer import digest

MakeMount = Callable[..., Mount]
MakeVictim = Callable[..., Victim]


class Writing:
    """The log's process on a disk, and what it has promised."""

    def __init__(self, mount: Mount, session: Path, *, boot: int, change: str = "") -> None:
        program = [str(HERE / "altered.py"), change, "writer"] if change else [str(HERE / "writer.py")]
        self._mount = mount
        self._boot = boot
        self._lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, *program, str(session), f"boot-{boot}"],
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": f"{HERE}:{HERE.parents[1]}"},
            text=True,
        )

    def promise(self, count: int) -> None:
        """Wait for so many promises more."""
        assert self._process.stdout
        self._lines += [self._process.stdout.readline() for _ in range(count)]
        assert self._lines[-1], "it ended"

    def cut(self, cut: str) -> dict[int, str]:
        """The power goes and comes back; returns digests of what had been promised, by ``seq``."""
        assert self._process.stdout
        self._mount.forget(cut, self._boot)
        self._process.kill()
        self._lines += self._process.stdout.read().splitlines()
        self._process.stdout.close()
        self._process.wait(LIMIT_S)
        self._mount.return_to_power()
        whole = [line.split() for line in self._lines]
        return {int(words[0]): words[1] for words in whole if len(words) == 2 and len(words[1]) == 16}


def promised(mount: Mount, session: Path, *, boot: int, cut: str, change: str = "") -> dict[int, str]:
    """Let the log's process write until it has promised some, cut, and return what it promised."""
    writing = Writing(mount, session, boot=boot, change=change)
    writing.promise(random.Random(boot).randint(20, 400))
    return writing.cut(cut)


def lost(session: Path, said: dict[int, str]) -> set[int]:
    """Promised entries that aren't there as they were."""
    try:
        there = {row.seq: digest(row) for row in LogReader(session).rows()}
    except AxonError:
        there = {}  # no log, or none that can be read
    return {seq for seq, known in said.items() if there.get(seq) != known}


def test_the_log_keeps_all_it_promised_through_many_cuts(mounted: MakeMount, tmp_path: Path) -> None:
    mount = mounted(tmp_path / "disk")
    session = mount.point / "session"
    make_folder(session)
    said: dict[int, str] = {}
    for boot in range(4):
        said |= promised(mount, session, boot=boot, cut=CUTS[boot % 3])
        assert len(said) > 20 * (boot + 1) - 1
        assert lost(session, said) == set()
        found = verify(session)
        assert found.ok, found


@pytest.mark.parametrize("control", ["a disk that ignores syncs", "commits that don't sync"])
def test_a_world_without_syncs_is_found_out(mounted: MakeMount, tmp_path: Path, control: str) -> None:
    mount = mounted(tmp_path / "disk", lying=control.startswith("a disk"))
    session = mount.point / "session"
    make_folder(session)
    change = "" if control.startswith("a disk") else "normal"
    said = promised(mount, session, boot=1, cut="dropped", change=change)
    assert lost(session, said), "nothing was lost: the test can't see a loss"


def test_a_failed_sync_and_then_a_cut(mounted: MakeMount, tmp_path: Path) -> None:
    """The bytes of the failed sync are gone. (What a cache still shows of them is the model's: test_forgotten.py.)"""
    mount = mounted(tmp_path / "disk")
    session = mount.point / "session"
    make_folder(session)
    writing = Writing(mount, session, boot=5)
    writing.promise(50)
    mount.fail("sync", file="log.db-wal", error="EIO", forget=True)
    until(lambda: mount.command()["shown"], "a sync fails")
    mount.heal()
    writing.promise(300)
    assert lost(session, writing.cut("dropped")) == set()
    found = verify(session)
    assert found.ok, found


class Speaker:
    """Says something again and again, and keeps what was acknowledged."""

    def __init__(self, agent: Victim) -> None:
        self.acknowledged: dict[int, str] = {}
        self._agent = agent
        self._threads = [threading.Thread(target=self._speak, args=(name,)) for name in "ab"]
        for thread in self._threads:
            thread.start()

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + LIMIT_S
        while len(self.acknowledged) < count:
            assert time.monotonic() < deadline, self._agent.words()
            time.sleep(0.005)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(LIMIT_S)

    def _speak(self, name: str) -> None:
        number = 0
        while True:
            number += 1
            text = f"{name}{number}"
            try:
                self.acknowledged[self._agent.ask("say", text=text)["seq"]] = text
            except AxonError:
                return  # the power is gone


def spoken(agent: Victim) -> dict[int, str]:
    rows = [row for row in agent.rows() if row.type == "cognet:stimulus:text"]
    return {row.seq: decode(row.body, row.seq).data.content for row in rows}  # type: ignore[union-attr]


def cycle(agent: Victim, mount: Mount, *, cut: str, seed: int) -> dict[int, str]:
    """Run, acknowledge, cut; returns what was acknowledged. The disk is back when it returns."""
    agent.start()
    assert agent.ask("stop" if seed % 2 else "clear", by="ann")["recorded"]
    speaker = Speaker(agent)
    speaker.wait_for(10 + seed % 7)
    mount.forget(cut, seed)
    agent.end()
    speaker.join()
    mount.return_to_power()
    return speaker.acknowledged


def test_the_kernel_keeps_all_it_acknowledged_through_cuts(mounted: MakeMount, victim: MakeVictim) -> None:
    agent = victim(sensors=True)
    mount = mounted(agent.folder / "data")
    said: dict[int, str] = {}
    session = ""
    for seed, cut in enumerate(CUTS):
        said |= cycle(agent, mount, cut=cut, seed=seed)
        session = session or agent.session.name
        assert agent.session.name == session
        assert StopLatch.load(mount.point).latched is bool(seed % 2)
        for file in mount.point.rglob("*.json"):
            json.loads(file.read_text())
        there = spoken(agent)
        assert {seq: there.get(seq) for seq in said} == said
        assert verify(agent.session).ok
    agent.start()
    assert not agent.summary()["boot"]["clean_before"]
    assert agent.stop() == 0
    assert verify(agent.session).ok


def test_a_kernel_that_doesnt_sync_is_found_out(mounted: MakeMount, victim: MakeVictim) -> None:
    agent = victim(sensors=True)
    agent.change = "normal"
    mount = mounted(agent.folder / "data")
    said = cycle(agent, mount, cut="dropped", seed=3)
    try:
        there = spoken(agent)
    except AxonError:
        there = {}  # no log, or none that can be read
    assert {seq: there.get(seq) for seq in said} != said, "nothing was lost: the test can't see a loss"


@pytest.mark.parametrize("lying", [False, True])
def test_a_small_file_is_old_or_new_after_a_cut(mounted: MakeMount, tmp_path: Path, lying: bool) -> None:
    """Every durable file but the databases: all are written by the one function that this calls."""
    mount = mounted(tmp_path / "disk", lying=lying)
    file = mount.point / "stop.json"
    kept: list[str] = []
    for seed in range(6):
        written = [kept[-1] if kept else ""]
        writing = threading.Thread(target=_write_on, args=(file, seed, written))
        writing.start()
        while len(written) < 5 + seed:
            time.sleep(0.001)
        mount.forget(CUTS[seed % 3], seed)
        writing.join(LIMIT_S)
        mount.return_to_power()
        if lying:
            break
        kept.append(file.read_text())
        assert kept[-1] in (written[-1], _content(seed, len(written)))
    if lying:
        assert not file.exists() or file.read_text() != written[-1], "the test can't see a loss"


def _content(seed: int, number: int) -> str:
    return f"{seed} {number} " * 700


def _write_on(file: Path, seed: int, written: list[str]) -> None:
    while True:
        try:
            write_durable(file, _content(seed, len(written)).encode())
        except OSError:
            return  # the power is gone
        written.append(_content(seed, len(written)))
