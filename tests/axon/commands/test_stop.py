import asyncio
import json
import stat

import pytest

from axon import emergency
from axon.person import person
from runtime.durable.locks import FileLock
from runtime.kernel.stop import StopLatch


@pytest.fixture
def robot(kernel, agent):
    """A kernel whose latch is in memory only, and what it was asked."""
    asked = []

    async def stop(by: str, reason: str) -> dict[str, object]:
        asked.append(("stop", by, reason))
        return {"stopped": True, "recorded": True, "confirmed": [], "unconfirmed": [], "seq": 5, "why": ""}

    async def clear(by: str) -> dict[str, object]:
        asked.append(("clear", by, ""))
        return {"stopped": False, "recorded": True, "confirmed": [], "unconfirmed": [], "seq": 6, "why": ""}

    kernel(stop=stop, clear=clear)
    return asked


def latch(agent):
    return StopLatch.load(agent / "data").state


def test_a_running_agent_is_stopped_by_its_kernel(axon, agent, robot):
    ended = axon("stop", agent, "--reason", "smoke")
    assert ended.status == 0
    assert ended.out.startswith("stopped; recorded\n")
    assert robot == [("stop", person(), "smoke")]
    assert not (agent / "data/stop.json").exists()


def test_clearing_goes_to_the_kernel_too(axon, agent, robot):
    ended = axon("stop", agent, "--clear")
    assert (ended.status, ended.out) == (0, "not stopped; recorded\n")
    assert robot == [("clear", person(), "")]


def test_without_a_kernel_the_next_start_is_stopped(axon, agent):
    ended = axon("stop", agent, "--reason", "smoke")
    assert ended.status == 0
    assert "the next start" in ended.out
    found = latch(agent)
    assert (found.latched, found.by, found.reason) == (True, person(), "smoke")


def test_clearing_without_a_kernel_lets_the_next_start_move(axon, agent):
    axon("stop", agent)
    assert axon("stop", agent, "--clear").status == 0
    assert not latch(agent).latched


def test_an_unreadable_latch_is_stopped_until_it_is_cleared(axon, agent):
    (agent / "data").mkdir()
    (agent / "data/stop.json").write_text("garbage")
    assert latch(agent).latched
    axon("stop", agent, "--clear")
    assert not latch(agent).latched


def test_the_report_is_json_for_programs(axon, agent):
    report = json.loads(axon("stop", agent, "--json").out)
    assert (report["stopped"], report["recorded"], report["running"]) == (True, True, False)


def test_a_stop_that_was_not_recorded_is_told_and_fails(axon, agent, kernel):
    async def stop(by: str, reason: str) -> dict[str, object]:
        return {
            "stopped": True,
            "recorded": False,
            "confirmed": [],
            "unconfirmed": [],
            "seq": 0,
            "why": "the disk is gone",
        }

    kernel(stop=stop)
    ended = axon("stop", agent)
    assert ended.status == 1
    assert "stopped; NOT RECORDED: the disk is gone" in ended.out


@pytest.fixture
def stuck(agent, kernel, monkeypatch):
    """A kernel that holds its agent, takes a question, and never answers."""

    async def never(**_args: str) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(emergency, "ANSWER_S", 0.1)
    kernel(stop=never, clear=never)
    lock = FileLock(agent / "data/lock")
    assert lock.acquire()
    yield
    lock.release()


def test_a_stuck_kernel_is_told_about_and_its_next_start_is_stopped(axon, agent, stuck):
    ended = axon("stop", agent)
    assert ended.status == 1
    assert "kill it" in ended.out
    assert latch(agent).latched


def test_a_stuck_kernel_is_not_cleared_behind_its_back(axon, agent, stuck):
    latched = StopLatch.load(agent / "data")
    latched.latch(by="somebody")
    latched.save()
    ended = axon("stop", agent, "--clear")
    assert ended.status == 1
    assert latch(agent).latched


def test_a_disk_that_takes_no_file_is_told(axon, agent, monkeypatch):
    def full(latch: StopLatch) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StopLatch, "save", full)
    ended = axon("stop", agent)
    assert ended.status == 1
    assert "NOT RECORDED: [Errno 28] No space left on device" in ended.out


def test_a_folder_without_an_agent_is_refused_and_stays_as_it_is(axon, tmp_path):
    ended = axon("stop", tmp_path)
    assert ended.err.startswith("AGENT_NOT_FOUND: ")
    assert list(tmp_path.iterdir()) == []
    assert stat.S_ISDIR(tmp_path.stat().st_mode)
