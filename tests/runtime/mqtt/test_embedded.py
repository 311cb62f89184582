"""What was changed of amqtt, where the client's own suite doesn't show it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from runtime.mqtt.broker import BrokerPlan, free_port
from runtime.mqtt.client import BrokerAddress, Connection

CONNECT = b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x01\x00\x03abc"


@pytest.fixture
def impatient(broker_process: Any) -> Iterator[Any]:
    """One that grants no second beyond the keep-alive."""
    port = free_port()
    argv = [sys.executable, "-m", "runtime.mqtt.embedded", str(port), "0"]
    broker = broker_process(BrokerPlan(address=BrokerAddress(host="127.0.0.1", port=port), kind="amqtt", argv=argv))
    broker.start()
    yield broker
    broker.kill()


async def test_a_client_that_is_silent_beyond_its_keep_alive_is_cut_off(impatient: Any) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient.address.port)
    writer.write(CONNECT)
    async with asyncio.timeout(20):
        assert await reader.readexactly(4) == b"\x20\x02\x00\x00"
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    "last_words", [b"", b"\x10", CONNECT[:9], CONNECT, CONNECT + b"\x30\x7f\x00\x05abc", b"GET / HTTP/1.1\r\n\r\n"]
)
async def test_connections_that_break_off_leave_nothing_behind(impatient: Any, last_words: bytes) -> None:
    """Neither a descriptor nor a broker that answers nobody."""
    folder = f"/proc/{impatient.pid}/fd"
    before = len(os.listdir(folder))
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", impatient.address.port)
        writer.write(last_words)
        await writer.drain()
        writer.transport.abort()
    async with asyncio.timeout(20):
        async with Connection(impatient.address) as connection:
            await connection.publish("x", b"y", qos=1)
        while len(os.listdir(folder)) > before:  # noqa: ASYNC110 - another process's descriptors tell nobody
            await asyncio.sleep(0.05)
