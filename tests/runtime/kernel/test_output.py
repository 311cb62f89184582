"""``kernel.output`` at the kernel's end: committed at once, answered when durable, forwarded as the fact it is."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from capsule.frames import Hello, frame
from runtime.abi.entries import OUTPUT_PREFIX, PAYLOAD_CLASSES, decode
from runtime.abi.link import LINK_PROTOCOL, Call, FromKernel, Reply
from runtime.kernel.brain_link import BrainLink
from runtime.kernel.delivery import Delivery
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

from .conftest import LIMIT_S

OUTPUTS = [type_ for type_ in PAYLOAD_CLASSES if type_.startswith(OUTPUT_PREFIX)]
REF = "sha256:" + "0" * 64
CONTENT: dict[str, dict[str, Any]] = {
    "cognet:output:text": {"content": "x"},
    "cognet:output:audio": {"ref": REF},
    "cognet:output:visual": {"ref": REF, "kind": "image/png", "width": 1, "height": 1},
    "cognet:output:field": {"reading": {"value": 0.5}},
}


class Brain:
    """A brain's end of a real link; notes how far the log was durable when a reply came."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._calls = 0
        self._replies: dict[int, tuple[Reply, int]] = {}
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def connect(self) -> Brain:
        """Say hello over a new socket pair."""
        ours, theirs = socket.socketpair()
        welcome: Any = lambda: Hello(protocol="welcome")  # noqa: E731 - nobody reads it
        link = BrainLink(log=self._log, verbs={}, welcome=welcome, events=self)  # type: ignore[arg-type]  # nothing is told
        await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=theirs)
        self._reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        self._send(Hello(protocol=LINK_PROTOCOL))
        return self

    def _send(self, message: msgspec.Struct) -> None:
        self._writer.write(frame(msgspec.msgpack.encode(message)))

    def output(self, type_: str, data: Any) -> int:
        """Call the verb; returns at once with the number of the call."""
        self._calls += 1
        self._send(Call(self._calls, "output", [type_, data], "wake-1", 0))
        return self._calls

    async def reply(self, call: int) -> tuple[Reply, int]:
        """The reply, and the log's ``durable_seq`` when it was read."""
        async with asyncio.timeout(LIMIT_S):
            while call not in self._replies:
                payload = await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4), "big"))
                with suppress(msgspec.ValidationError):  # the hellos
                    message = msgspec.msgpack.decode(payload, type=FromKernel)
                    if isinstance(message, Reply):
                        self._replies[message.call] = message, self._log.durable_seq
        return self._replies[call]

    async def close(self) -> None:
        """Leave."""
        self._writer.close()
        await self._writer.wait_closed()


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


@pytest.fixture
async def brain(log: Log) -> AsyncIterator[Brain]:
    made = await Brain(log).connect()
    yield made
    await made.close()


def test_every_kind_of_output_is_looked_at() -> None:
    assert set(CONTENT) == set(OUTPUTS)


@pytest.mark.parametrize("type_", OUTPUTS)
async def test_it_is_seen_at_once_and_answered_when_it_is_on_the_disk(log: Log, brain: Brain, type_: str) -> None:
    seen: list[tuple[str, int]] = []
    log.on_admitted = lambda rows: seen.extend((row.type, log.durable_seq) for row in rows)
    reply, durable_seq = await brain.reply(brain.output(type_, {"channel": "a", **CONTENT[type_]}))
    assert seen == [(type_, 0)], "it is in the projection before it is on the disk"
    assert reply.error is None
    assert durable_seq == log.last_seq == 1


@pytest.mark.parametrize("type_", OUTPUTS)
async def test_every_payload_takes_a_channel_and_an_optional_chunk(log: Log, brain: Brain, type_: str) -> None:
    refused, _ = await brain.reply(brain.output(type_, CONTENT[type_]))
    assert refused.error
    assert refused.error.code == "ENTRY_INVALID"
    for chunk in ({}, {"chunk": {"of": "m"}}, {"chunk": {"of": "m", "final": True}}):
        reply, _ = await brain.reply(brain.output(type_, {"channel": "a", **CONTENT[type_], **chunk}))
        assert reply.error is None
    chunks = [decode(row.body, row.seq).data.chunk for row in log.recent(0)]  # type: ignore[union-attr]  # all are outputs
    assert [chunk and chunk.final for chunk in chunks] == [None, False, True]


class Observer:
    """Takes what is published."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self.heard: list[dict[str, Any]] = []
        self.all = asyncio.Event()

    async def publish(self, topic: str, payload: bytes, **_: Any) -> None:
        assert topic == "axon/rover/output/text/voice"
        self.heard.append(json.loads(payload))
        if len(self.heard) == self._wanted:
            self.all.set()


async def test_chunks_are_ordinary_entries_that_reach_an_observer_each_as_it_is(log: Log, brain: Brain) -> None:
    observer, delivery = Observer(3), Delivery(agent="rover")
    log.on_durable = delivery.durable
    for word, final in (("one ", False), ("two ", False), ("three", True)):
        data = {"channel": "voice", "content": word, "chunk": {"of": "m", "final": final}}
        await brain.reply(brain.output("cognet:output:text", data))
    serving = asyncio.ensure_future(delivery.serve(observer))  # type: ignore[arg-type]  # the one method it calls
    async with asyncio.timeout(LIMIT_S):
        await observer.all.wait()
    serving.cancel()
    assert [(said["seq"], said["content"], said["chunk"].get("final", False)) for said in observer.heard] == [
        (1, "one ", False),
        (2, "two ", False),
        (3, "three", True),
    ]
