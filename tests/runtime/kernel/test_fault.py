"""Faults: the kernel writes them as system messages that the brain reads and people don't see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.entries import decode
from runtime.abi.errors import CallInvalid
from runtime.abi.faults import FAULT, MAX_FAULT_CHARS, bounded, is_fault
from runtime.abi.link import Call
from runtime.kernel.delivery import Delivery
from runtime.kernel.fault import Faults
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

from .conftest import LIMIT_S
from .test_knowledge import asked, scholar  # noqa: F401 - a fixture


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    made = Log.open(
        tmp_path,
        agent_id="rover",
        session_id="session",
        boot_id="boot",
        settings=LogSettings(volatile_data=True),
        media=MemoryRing(max_bytes=1_000_000),
    )
    made.start(asyncio.get_running_loop())
    yield made
    await made.close(clean=True)


def entries(log: Log) -> list[Any]:
    return [decode(row.body, row.seq) for row in log.recent(0)]


def call(*args: Any, cursor: int | None = None) -> Call:
    return Call(1, "fault", list(args), "wake-1", cursor)


async def test_it_is_committed_as_a_system_message_and_durable_when_it_resolves(log):
    await Faults(log).verbs["fault"](call("UNDECLARED_BINDING", "{total} isn't there", "so {total}"), lambda _: None)
    assert log.durable_seq == log.last_seq == 1
    (entry,) = entries(log)
    assert entry.type == "axon:system:message"
    assert (entry.data.type, entry.data.text) == (FAULT, "{total} isn't there")
    assert entry.data.facts == {"code": "UNDECLARED_BINDING", "excerpt": "so {total}"}
    assert entry.context.wake_id == "wake-1"
    assert is_fault(entry)


async def test_without_an_excerpt_there_is_none(log):
    await Faults(log).verbs["fault"](call("A", "b", None), lambda _: None)
    assert entries(log)[0].data.facts == {"code": "A"}


async def test_the_kernel_records_one_of_its_own(log):
    row = Faults(log).record(code="UNCLOSED_BLOCK", message="never closed", excerpt="```python")
    assert row.seq == 1
    assert is_fault(entries(log)[0])


async def test_long_texts_are_cut_and_the_cut_is_named(log):
    Faults(log).record(code="A", message="m" * 1_000_000, excerpt="e" * 1_000_000)
    data = entries(log)[0].data
    assert len(data.text) <= MAX_FAULT_CHARS
    assert data.text.endswith(" more characters)")
    assert len(data.facts["excerpt"]) <= MAX_FAULT_CHARS
    assert bounded(bounded("x" * 10_000)) == bounded("x" * 10_000)


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["A", "b"],
        ["A", "b", "c", "d"],
        [1, "b", None],
        ["A", None, None],
        ["A", "b", 3],
        ["", "b", None],
        ["A\n", "b", None],
        ["a b", "b", None],
        ["x" * 65, "b", None],
    ],
)
async def test_what_is_no_fault_is_refused_and_nothing_is_admitted(log, args):
    with pytest.raises(CallInvalid):
        await Faults(log).verbs["fault"](call(*args), lambda _: None)
    assert log.last_seq == 0


async def test_a_cursor_that_a_brain_made_up_is_left_out(log):
    for cursor in (-1, 10**9):
        await Faults(log).verbs["fault"](call("A", "b", None, cursor=cursor), lambda _: None)
    assert [entry.context.cursor for entry in entries(log)] == [None, None]


class Published:
    """Takes what is published."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.some = asyncio.Event()

    async def publish(self, topic: str, payload: bytes, **_: Any) -> None:
        self.messages.append((topic, payload))
        self.some.set()


async def test_mqtt_carries_none(log):
    Faults(log).record(code="BROKEN", message="a secret fault")
    log.admit("cognet:output:text", {"channel": "voice", "content": "hello"})
    delivery, published = Delivery(agent="rover"), Published()
    delivery.durable(log.recent(0))
    serving = asyncio.ensure_future(delivery.serve(published))  # type: ignore[arg-type]  # the one method it calls
    async with asyncio.timeout(LIMIT_S):
        await published.some.wait()
    serving.cancel()
    assert [topic for topic, _ in published.messages] == ["axon/rover/output/text/voice"]


def test_the_brain_reads_its_fault_and_the_terminal_shows_none(scholar):  # noqa: F811 - the fixture
    agent = scholar
    assert asked(agent, "fault", code="BROKEN", message="a secret fault", excerpt="its words") == {"value": None}
    (seen,) = [data for data in asked(agent, "seen", "axon:system:message")["value"] if data["type"] == FAULT]
    assert seen["facts"] == {"code": "BROKEN", "excerpt": "its words"}
    agent.stop()
    assert "secret fault" not in agent.words()
