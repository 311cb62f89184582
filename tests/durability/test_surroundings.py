"""What happens around a kernel: the wall clock jumps, memory runs out, the data folder is pulled away."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from axon.client import Control
from runtime.abi.entries import decode
from runtime.kernel.stop import StopLatch
from runtime.log.verify import verify

from ..runtime.kernel.conftest import until
from .conftest import Victim

MakeVictim = Callable[..., Victim]
FORTNIGHT_MS = 14 * 24 * 3600 * 1000


def steps(agent: Victim) -> list[int]:
    """The steps of the clock that the log knows, in milliseconds."""
    found = [decode(row.body, row.seq).data for row in agent.rows() if row.type == "axon:system:message"]
    return [message.facts["by_ms"] for message in found if message.type == "clock"]  # type: ignore[union-attr]


def test_a_clock_that_jumps(victim: MakeVictim, tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    offset.write_text("0")
    agent = victim(sensors=True)
    agent.change = f"clock:{offset}"
    agent.start()
    now_ms = int(time.time() * 1000)
    for number, off_ms in enumerate((FORTNIGHT_MS, -FORTNIGHT_MS, -now_ms, 0), start=1):
        aside = offset.with_suffix(".new")
        aside.write_text(str(off_ms))
        aside.rename(offset)
        until(lambda count=number: len(steps(agent)) == count, "the step is recorded")
        agent.ask("say", text=f"after step {number}")
        frames = agent.committed("camera")
        until(lambda seen=frames: agent.committed("camera") > seen, "frames are recorded")
        agent.wakes_go_on()
    assert agent.ask("stop", by="ann")["recorded"]
    assert [abs(step) > FORTNIGHT_MS // 2 for step in steps(agent)] == [True] * 4
    assert agent.stop() == 0
    assert verify(agent.session).ok


def test_a_board_that_boots_in_1970(victim: MakeVictim, tmp_path: Path) -> None:
    agent = victim()
    agent.start()
    said = agent.ask("say", text="today")["seq"]
    assert agent.stop() == 0
    offset = tmp_path / "offset"
    offset.write_text(str(-int(time.time() * 1000)))
    agent.change = f"clock:{offset}"
    agent.start()
    later = agent.ask("say", text="long ago")["seq"]
    assert agent.stop() == 0
    entries = {row.seq: decode(row.body, row.seq) for row in agent.rows()}
    assert said < later
    assert entries[later].time.ms < 10 * FORTNIGHT_MS < entries[said].time.ms
    assert verify(agent.session).ok


def test_a_brain_that_asks_for_too_much_memory(victim: MakeVictim) -> None:
    agent = victim("hungry", sensors=True).start()
    agent.ask("say", text="eat")
    until(lambda: agent.summary()["wakes"]["failed"] or agent.restarts("brain"), "the brain is refused")
    agent.wakes_go_on()
    frames = agent.committed("camera")
    until(lambda: agent.committed("camera") > frames, "frames are recorded")
    assert agent.ask("stop", by="ann")["recorded"]
    assert agent.stop() == 0
    assert "[brain] wake " in agent.words()
    assert verify(agent.session).ok


def test_a_data_folder_that_is_pulled_away_and_comes_back(victim: MakeVictim) -> None:
    agent = victim().start()
    said = agent.ask("say", text="before")["seq"]
    data = agent.folder / "data"
    with Control(agent.folder) as line:
        data.rename(agent.folder / "pulled")
        until(lambda: line.ask("summary")["storage"] == "failed", "the loss is noticed")
        until(lambda: "[kernel] storage is failed: " in agent.words(), "the person is told")
        wakes = line.ask("summary")["wakes"]["admitted"]
        until(lambda: line.ask("summary")["wakes"]["admitted"] > wakes + 15, "the brain goes on waking")
        report = line.ask("stop", by="ann")
        assert report["stopped"]
        assert not report["recorded"]
        assert not data.exists(), "somebody made another data folder in the lost one's place"
        (agent.folder / "pulled").rename(data)
        until(lambda: line.ask("summary")["storage"] == "ok", "recording resumes")
        until(lambda: StopLatch.load(data).latched, "the stop is recorded after all")
    assert agent.stop() == 0
    rows = {row.seq: row for row in agent.rows()}
    assert decode(rows[said].body, said).data.content == "before"  # type: ignore[union-attr]
    assert verify(agent.session).ok
