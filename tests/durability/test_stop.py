"""The emergency stop while the disk refuses everything: it acts at once, and says that it isn't recorded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.kernel.stop import StopLatch

from ..runtime.kernel.actuators.test_agent import STEER, Robot
from ..runtime.kernel.conftest import HERE as KERNEL
from ..runtime.kernel.conftest import until
from .conftest import made
from .mount import Mount

LOG = "log.db*"


@pytest.fixture
def robot(mounted: Callable[..., Mount], tmp_path: Path) -> Iterator[tuple[Robot, Mount]]:
    """A moving robot whose data lie on a disk that can fail."""
    agent = made(tmp_path / "agent", "mirror", config=STEER)
    shutil.rmtree(agent.folder / "cognet")
    shutil.copytree(KERNEL / "cognets" / "helmsman", agent.folder / "cognet")
    disk = mounted(agent.folder / "data")
    moving = Robot(agent.start())
    moving.moves()
    yield moving, disk
    agent.end()


def test_a_stop_acts_and_is_confirmed_though_no_disk_takes_it(robot: tuple[Robot, Mount]) -> None:
    moving, disk = robot
    disk.fail("write", "create", "rename", "sync", error="EIO")
    report = moving.stop()
    assert (report["stopped"], report["confirmed"], report["recorded"]) == (True, ["steer"], False)
    assert report["why"]
    assert moving.last["why"] == "emergency stop 1"
    disk.heal()
    until(lambda: moving.agent.summary()["storage"] == "ok", "the disk takes entries again")
    until(lambda: StopLatch.load(disk.point).latched, "the stop is recorded now")
    moving.rests()
    assert moving.clear()["confirmed"] == ["steer"]
    moving.moves()


def test_a_robot_whose_disk_fails_rests_and_can_still_be_stopped(robot: tuple[Robot, Mount]) -> None:
    moving, disk = robot
    disk.fail("write", file=LOG, error="EIO")
    until(lambda: moving.last.get("why") == "nothing was heard in time", "no output is durable, so it rests")
    assert moving.stop()["confirmed"] == ["steer"]
    disk.heal()
    until(lambda: moving.agent.summary()["storage"] == "ok", "the disk takes entries again")
    moving.rests()
    assert moving.clear()["recorded"]
    moving.moves()
