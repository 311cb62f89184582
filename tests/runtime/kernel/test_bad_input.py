"""Nonsense from outside: counted and shown, never stored, never a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import msgspec

from axon.client import running
from runtime.abi.entries import decode
from runtime.mqtt.client import Connection, parse_address

from .conftest import LIMIT_S, Agent, until

MakeAgent = Callable[..., Agent]
BIG = b"x" * 10_000_000
NONSENSE: list[tuple[str, bytes]] = [
    ("stimulus/field/a", b"{"),
    ("stimulus/field/a", b""),
    ("stimulus/field/a", b'{"reading": {"value": NaN}}'),
    ("stimulus/field/a", b'{"reading": {"value": 1e999}}'),
    ("stimulus/field/a", b'{"reading": {"value": {}}}'),
    ("stimulus/field/a", b'{"reading": {"value": 1}, "captured": {"epoch": 1, "ms": "x", "seq": -1}}'),
    ("stimulus/text/a", b'{"content": 5}'),
    ("stimulus/text/a", b'{"content": "\xff\xfe"}'),
    ("stimulus/text/a", b'{"content": "a", "unknown": 1}'),
    ("stimulus/text/a", BIG),
    ("stimulus/visual/a", msgspec.msgpack.encode({"bytes": BIG, "kind": "image/jpeg", "width": 1, "height": 1})),
    ("stimulus/visual/a", msgspec.msgpack.encode({"bytes": b"", "kind": "image/jpeg", "width": 1, "height": 1})),
    ("stimulus/visual/a", b"\xc1"),
    ("stimulus/audio/a", msgspec.msgpack.encode({"bytes": b"x", "duration_ms": float("nan")})),
    ("stimulus/smell/a", b"{}"),
    ("stimulus/text", b'{"content": "a"}'),
    ("stimulus/text/a/b/c", b'{"content": "a"}'),
    ("stimulus/text/ä", b'{"content": "a"}'),
    ("stimulus/text/" + "x" * 300, b'{"content": "a"}'),
    ("stop", b"\x00"),
    ("interrupt", b'{"id": "x"}'),
    ("sensor/a", b'{"type": "gap"}'),
    ("sensor/a", b"\xff"),
]


def flood(agent: Agent, messages: list[tuple[str, bytes]]) -> None:
    async def send() -> None:
        async with asyncio.timeout(LIMIT_S), Connection(parse_address(running(agent.folder).broker)) as connection:
            await until_online(connection)
            for topic, payload in messages:
                await connection.publish(f"axon/test/{topic}", payload, qos=1)

    asyncio.run(send())


async def until_online(connection: Connection) -> None:
    """Before the kernel has subscribed, the broker drops what nobody wants."""
    await connection.subscribe("axon/test/status")
    async for message in connection.messages():
        if json.loads(message.payload)["state"] == "online":
            return


def field(value: float, epoch: str, seq: int) -> bytes:
    captured = {"epoch": epoch, "ms": 0, "seq": seq}
    return json.dumps({"id": "device", "reading": {"value": value}, "captured": captured}).encode()


def test_nonsense_is_counted_and_shown_and_not_stored(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    flood(agent, NONSENSE)
    until(lambda: sum(agent.summary()["refused"].values()) == len(NONSENSE), "all of it is counted")
    found = agent.summary()
    assert set(found["refused"]) == {"STIMULUS_INVALID", "STIMULUS_TOO_LARGE", "TOPIC_INVALID", "COMMAND_REFUSED"}
    assert all(use["restarts"] == 0 for use in found["processes"].values())
    assert agent.stop() == 0
    assert not [row for row in agent.rows() if row.type.startswith("cognet:stimulus")]


def test_one_source_with_two_live_epochs_is_refused(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    sent = [("a", 1), ("a", 2), ("b", 1), ("a", 3), ("b", 2), ("a", 4)]
    flood(agent, [("stimulus/field/f", field(seq, epoch, seq)) for epoch, seq in sent])
    until(lambda: agent.summary()["refused"].get("SOURCE_CONFLICT") == 2, "the old epoch is refused")
    assert agent.stop() == 0
    rows = [decode(row.body, row.seq) for row in agent.rows() if row.type == "cognet:stimulus:field"]
    kept = [(entry.data.captured.epoch, entry.data.captured.seq) for entry in rows]  # type: ignore[union-attr]
    assert kept == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_very_many_channels_are_refused_beyond_the_limit(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    flood(agent, [(f"stimulus/field/c{number}", b'{"reading": {"value": 1}}') for number in range(3000)])
    until(lambda: agent.summary()["refused"].get("CHANNEL_LIMIT") == 3000 - 1024, "the rest is refused")
    assert sum(counts["committed"] for counts in agent.summary()["stimuli"].values()) == 1024
    assert agent.stop() == 0


def test_a_duplicate_is_stored_once(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    flood(agent, [("stimulus/field/f", field(seq, "a", seq)) for seq in (1, 1, 2, 1, 2, 3)])
    until(lambda: agent.committed("f") == 3, "each is stored once")
    assert agent.summary()["stimuli"]["f"]["duplicates"] == 3
    assert agent.stop() == 0
