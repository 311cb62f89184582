"""A sensor on another board: it keeps what isn't confirmed, and every counter value is in the log exactly once.

Its driver is a process of its own with the product's spool; the broker stays up while kernels die.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.entries import decode
from runtime.log.verify import verify
from runtime.mqtt.address import BrokerAddress
from runtime.mqtt.broker import plan, wait_until_up

from ..runtime.kernel.conftest import LIMIT_S, until
from .conftest import Victim
from .mount import Mount

MakeVictim = Callable[..., Victim]
CHANNEL = "elsewhere"
CYCLES = {"killed": 3, "cut": 2}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerAddress]:
    """One that no kernel owns; mosquitto, or amqtt where it is missing."""
    found = plan("private", tmp_path / "broker")
    assert found.argv
    process = subprocess.Popen(found.argv, stderr=subprocess.DEVNULL)
    asyncio.run(wait_until_up(found.address))
    yield found.address
    process.kill()
    process.wait(LIMIT_S)


@pytest.fixture
def board(broker: BrokerAddress) -> Iterator[None]:
    """The other board, from before the first kernel to after the last."""
    where = {"host": broker.host, "port": broker.port}
    settings = {"agent": "test", "broker": where, "channel": CHANNEL, "id": "board-2", "fps": 20}
    process = subprocess.Popen([sys.executable, "-m", "sensors", "host", json.dumps(settings)])
    yield
    process.kill()
    process.wait(LIMIT_S)


def counters(agent: Victim) -> dict[str, Counter[int]]:
    """How often each counter value of each of the sensor's channels is in the log."""
    found: dict[str, Counter[int]] = {}
    for row in agent.rows():
        if row.type == "cognet:stimulus:field":
            data: Any = decode(row.body, row.seq).data
            if data.source.channel.startswith(CHANNEL):
                found.setdefault(data.source.channel, Counter())[data.captured.seq] += 1
    return found


def newest(agent: Victim) -> int:
    """The lowest of the channels' newest committed counters: the sensor's deliveries since this kernel began."""
    stimuli = agent.summary()["stimuli"]
    mine = [counts["committed"] for name, counts in stimuli.items() if name.startswith(CHANNEL)]
    return min(mine, default=0)


def deliver(agent: Victim, *, more: int) -> None:
    agent.start()
    until(lambda: newest(agent) > more, "the sensor's readings are recorded")


def holes(found: dict[str, Counter[int]]) -> set[tuple[str, int]]:
    return {
        (channel, seq) for channel, each in found.items() for seq in range(1, max(each) + 1) if each.get(seq, 0) != 1
    }


@pytest.mark.parametrize("end", ["killed", "cut"])
def test_every_counter_is_there_once(
    request: pytest.FixtureRequest, broker: BrokerAddress, board: None, victim: MakeVictim, end: str
) -> None:
    agent = victim(config=f'[broker]\nurl = "mqtt://{broker.host}:{broker.port}"')
    mount: Mount | None = request.getfixturevalue("mounted")(agent.folder / "data") if end == "cut" else None
    chance = random.Random(7)
    for seed in range(CYCLES[end]):
        deliver(agent, more=3 + chance.randint(0, 8))
        time.sleep(chance.uniform(0, 0.3))
        if mount:
            mount.forget("torn", seed)
        agent.end()
        if mount:
            mount.return_to_power()
    deliver(agent, more=10)
    assert agent.stop() == 0
    found = counters(agent)
    assert len(found) >= 2
    assert holes(found) == set()
    assert min(max(each) for each in found.values()) > 20
    assert verify(agent.session).ok


def test_a_kernel_that_confirms_what_it_didnt_sync_is_found_out(
    broker: BrokerAddress, board: None, victim: MakeVictim, mounted: Callable[..., Mount]
) -> None:
    agent = victim(config=f'[broker]\nurl = "mqtt://{broker.host}:{broker.port}"')
    mount = mounted(agent.folder / "data")
    deliver(agent, more=3)
    assert agent.stop() == 0  # a first session that is whole, so that there is a log to look at
    agent.change = "normal"
    deliver(agent, more=15)
    time.sleep(0.5)  # until confirmations, five a second, have reached the sensor
    mount.forget("dropped", 1)
    agent.end()
    mount.return_to_power()
    agent.change = ""
    deliver(agent, more=3)
    assert agent.stop() == 0
    assert holes(counters(agent)), "nothing was lost: the test can't see a loss"
