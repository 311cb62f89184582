"""What was changed of amqtt, where the client's own suite doesn't show it."""

from __future__ import annotations

import asyncio

from runtime.mqtt.broker import free_port
from runtime.mqtt.client import BrokerAddress, Connection
from runtime.mqtt.embedded import embedded_broker

CONNECT = b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x01\x00\x03abc"


async def test_a_client_that_is_silent_beyond_its_keep_alive_is_cut_off() -> None:
    broker = embedded_broker("127.0.0.1", port := free_port(), grace_s=0)
    await broker.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(CONNECT)
    async with asyncio.timeout(20):
        assert await reader.readexactly(4) == b"\x20\x02\x00\x00"
        assert await reader.read() == b""
    writer.close()
    await broker.shutdown()


async def test_a_connection_that_ends_in_the_middle_of_a_message_costs_nothing() -> None:
    broker = embedded_broker("127.0.0.1", port := free_port())
    await broker.start()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(CONNECT + b"\x30\x7f\x00\x05abc")
    await writer.drain()
    writer.transport.abort()
    async with asyncio.timeout(20), Connection(BrokerAddress(host="127.0.0.1", port=port)) as connection:
        await connection.publish("x", b"y", qos=1)
    await broker.shutdown()
