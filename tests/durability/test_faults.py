"""One real kernel on a disk that fails in every way: what goes on, what is said, and that all of it comes back.

The kernel is the same one through all of these, as on a robot; docs/durability.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capsule.errors import AxonError
from runtime.abi.entries import decode
from runtime.kernel.stop import StopLatch
from runtime.log.reader import LogReader
from runtime.log.verify import verify

from ..runtime.kernel.conftest import until
from .conftest import Victim, made
from .mount import Mount

LOG = "log.db*"
LONG = "x" * 60_000
CHANGES = ("write", "create", "rename", "remove", "chmod", "open for writing")


class Robot:
    """The agent, the disk under its data, and what it has acknowledged."""

    def __init__(self, agent: Victim, disk: Mount) -> None:
        self.agent = agent
        self.disk = disk
        self.said: dict[int, str] = {}

    def say(self, text: str) -> int:
        seq = int(self.agent.ask("say", text=text)["seq"])
        self.said[seq] = text
        return seq

    def last_told(self) -> int:
        """The moment of the newest telemetry on the disk."""
        return max(event.mono_us for event in LogReader(self.agent.session).telemetry())

    def refused(self, text: str = "now?") -> str:
        """The code with which words are refused now, "" when they are taken."""
        try:
            self.say(text)
        except AxonError as error:
            return error.code
        return ""

    def stop(self) -> dict[str, Any]:
        report: dict[str, Any] = self.agent.ask("stop", by="ann", reason="a fault")
        assert report["stopped"]
        assert self.agent.summary()["stopped"]
        return report

    def until_storage_is(self, *states: str) -> None:
        until(lambda: self.agent.storage() in states, f"storage is {states}: {self.agent.words()[-2000:]}")

    def until_told(self, line: str) -> None:
        """What was said a moment ago isn't said again, so this asks for no moment."""
        until(lambda: line in self.agent.words(), f"{line!r} is said")

    def shown(self) -> int:
        """How many operations met a fault."""
        return int(self.disk.command()["shown"])

    def comes_back(self) -> None:
        """The fault has ended: recording resumes by itself, and nothing that was acknowledged is missing."""
        self.disk.heal()
        self.until_storage_is("ok")
        self.say("back")
        until(lambda: StopLatch.load(self.disk.point).latched == self.agent.summary()["stopped"], "the latch is saved")
        assert self.agent.ask("clear", by="ann")["recorded"]
        self.agent.wakes_go_on()
        self.check()

    def check(self) -> None:
        """All that was acknowledged is there, and the log is whole."""
        rows = {row.seq: row for row in self.agent.rows()}
        missing = [seq for seq, text in self.said.items() if decode(rows[seq].body, seq).data.content != text]  # type: ignore[union-attr]
        assert missing == []
        found = verify(self.agent.session)
        assert found.ok, found


@pytest.fixture(scope="module")
def running(fuse: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robot]:
    base = tmp_path_factory.mktemp("robot")
    agent = made(base / "agent", sensors=True, config='[media]\nstore = "disk"\nmax_bytes = "4 MB"')
    disk = Mount(agent.folder / "data", base)
    try:
        robot = Robot(agent.start(), disk)
        yield robot
        assert agent.stop() == 0
        disk.forget("dropped", 1)  # what a failed sync lost may still be in the cache
        disk.return_to_power()
        robot.check()
    finally:
        agent.end()
        disk.unmount()


@pytest.fixture
def robot(running: Robot) -> Iterator[Robot]:
    """The running robot, well before the test and made well after it."""
    running.until_storage_is("ok")
    seq = running.say("before")
    yield running
    running.disk.heal()
    if running.agent.process and running.agent.process.poll() is not None:
        running.agent.start()
    assert seq in running.said


FAILING: dict[str, dict[str, Any]] = {
    "EIO on write": {"on": ["write"], "file": LOG, "error": "EIO"},
    "EIO on sync": {"on": ["sync"], "file": LOG, "error": "EIO", "forget": True},
    "short writes": {"on": ["write"], "file": LOG, "error": "EIO", "short": True},
    "read only": {"on": CHANGES, "error": "EROFS"},
}


@pytest.mark.parametrize("fault", FAILING)
def test_a_disk_that_refuses_the_log(robot: Robot, fault: str) -> None:
    robot.disk.command(faults=[FAILING[fault]])
    robot.until_storage_is("failed")
    robot.until_told("[kernel] storage is failed: ")
    assert robot.refused() == "STORAGE_FAILED"
    robot.agent.wakes_go_on()
    report = robot.stop()
    assert not report["recorded"]
    assert report["why"]
    robot.comes_back()
    robot.until_told("[kernel] storage is ok")


def test_writes_that_are_cut_short_are_finished(robot: Robot) -> None:
    robot.disk.fail("write", file="*", short=True)
    for number in range(5):
        robot.say(f"in two parts {number}")
    assert robot.stop()["recorded"]
    assert robot.agent.storage() == "ok"
    robot.comes_back()


def test_a_checkpoint_that_fails(robot: Robot) -> None:
    robot.disk.fail("write", file="log.db", error="EIO")
    before = robot.shown()
    until(lambda: robot.say(LONG) and robot.shown() > before, "a checkpoint fails")
    for number in range(20):
        robot.say(f"the write-ahead log takes it all the same {number}")
    robot.agent.wakes_go_on()
    assert robot.stop()["recorded"]
    assert robot.shown() - before < 10, "a checkpoint that fails is tried at every commit"
    robot.until_told("[kernel] storage is recovering: ")
    robot.comes_back()


def test_a_full_disk(robot: Robot) -> None:
    session = robot.agent.session
    until(lambda: (session / "media.db").exists(), "there are media")
    robot.disk.command(leave=0)
    until(lambda: robot.refused(LONG) == "LOG_BACKLOG_FULL", "new stimuli are refused")
    robot.until_storage_is("full")
    robot.until_told("[kernel] storage is full: ")
    assert not (session / "media.db").exists()
    assert not (session / "log.reserve").exists()
    told, seq = robot.last_told(), robot.agent.summary()["last_seq"]
    until(lambda: robot.agent.summary()["last_seq"] > seq + 8, "outputs are recorded")
    assert robot.stop()["recorded"]
    robot.agent.wakes_go_on()
    assert robot.last_told() == told, "telemetry is written though it should give way"
    robot.comes_back()
    until(lambda: (session / "log.reserve").exists(), "the reserve is taken again")
    until(lambda: robot.last_told() > told, "telemetry is written again")


def test_a_disk_without_a_byte_left(robot: Robot) -> None:
    robot.disk.fail("write", error="ENOSPC")
    robot.until_storage_is("failed")
    robot.agent.wakes_go_on()
    assert not robot.stop()["recorded"]
    robot.comes_back()


def test_a_sync_that_takes_two_seconds(robot: Robot) -> None:
    robot.disk.fail("sync", file=LOG, delay_s=2.0)
    robot.say("slowly")
    robot.agent.wakes_go_on()
    robot.stop()
    assert robot.agent.storage() == "ok"
    robot.comes_back()


def test_a_session_that_vanishes_and_comes_back(robot: Robot) -> None:
    folder = robot.disk.point / "sessions"
    folder.rename(robot.disk.point / "away")
    robot.until_storage_is("failed")
    robot.agent.wakes_go_on()
    assert not robot.stop()["recorded"]
    (robot.disk.point / "away").rename(folder)
    robot.comes_back()
