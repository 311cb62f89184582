"""Faults are for the model: ``axon log show`` keeps them from people unless they ask."""

import asyncio
import json

import pytest

from runtime.abi.ids import uuid7
from runtime.abi.payloads import SystemMessage, TextStimulus
from runtime.kernel.fault import Faults
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing


async def live(folder):
    log = Log.open(
        folder,
        agent_id="robot",
        session_id=folder.name,
        boot_id=uuid7(),
        settings=LogSettings(volatile_data=True),
        media=MemoryRing(max_bytes=10**6),
    )
    log.start(asyncio.get_running_loop())
    for number in range(3):
        log.admit("cognet:stimulus:text", TextStimulus(source={"channel": "person"}, content=str(number)))
    log.admit("axon:system:message", SystemMessage(type="clock", text="stepped"))
    for number in range(20):
        Faults(log).record(code="UNCLOSED_BLOCK", message="a block was never closed", excerpt=f"```python {number}")
    await log.durable(log.last_seq)
    await log.close(clean=True)


@pytest.fixture
def lived(agent):
    folder = agent / "data/sessions/0001"
    folder.mkdir(parents=True)
    asyncio.run(live(folder))
    return agent


@pytest.mark.parametrize(
    ("words", "seqs"),
    [
        ([], [1, 2, 3, 4]),
        (["--faults"], list(range(1, 25))),
        (["--type", "axon:system:message"], list(range(4, 25))),
        (["--type", "axon"], list(range(4, 25))),
        (["--type", "cognet"], [1, 2, 3]),
        (["--last", 2], [3, 4]),
        (["--last", 50], [1, 2, 3, 4]),
        (["--last", 2, "--after", 3], [4]),
        (["--last", 2, "--upto", 3], [2, 3]),
        (["--last", 2, "--faults"], [23, 24]),
    ],
)
def test_they_are_left_out_unless_asked_for(axon, lived, words, seqs):
    ended = axon("log", "show", lived, "--json", *words)
    assert ended.status == 0, ended.err
    assert [json.loads(line)["time"]["seq"] for line in ended.out.splitlines()] == seqs


def test_one_that_is_asked_for_is_a_line_like_others(axon, lived):
    out = axon("log", "show", lived, "--faults", "--last", 1).out
    assert "format-violation: a block was never closed" in out
