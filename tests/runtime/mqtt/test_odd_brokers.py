"""Brokers that misbehave: a socket that speaks just enough MQTT."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.client import BrokerAddress, Connection
from runtime.mqtt.connection import MAX_UNSENT

CONNACK = b"\x20\x02\x00\x00"
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def odd_broker(peer: Peer) -> AsyncIterator[BrokerAddress]:
    """Serve ``peer``, which is cancelled at the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await peer(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield BrokerAddress(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def publish(topic: bytes, payload: bytes) -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + payload
    return bytes([0x30, len(body)]) + body


async def test_a_topic_that_is_not_utf_8_is_delivered_and_ends_nothing(receive: Any) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(CONNACK + publish(b"axon/\xff\xfe", b"bad") + publish(b"axon/x", b"good"))
        await asyncio.Event().wait()

    async with odd_broker(peer) as address, Connection(address) as connection:
        bad, good = await receive(connection, 2)
    assert (bad.topic, bad.payload) == ("axon/\\xff\\xfe", b"bad")
    assert (good.topic, good.payload) == ("axon/x", b"good")


@pytest.mark.parametrize(
    "garbage", [b"\x00\x00\x00", b"\x30\xff\xff\xff\xff\xff", b"\xf0\x00", b"HTTP/1.1 400 Bad Request\r\n\r\n"]
)
async def test_garbage_loses_the_connection(garbage: bytes) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(CONNACK + garbage)
        await writer.drain()
        await asyncio.sleep(0)

    async with odd_broker(peer) as address, asyncio.timeout(20):
        with pytest.raises(BrokerUnavailable):
            async with Connection(address) as connection:
                await anext(connection.messages())


async def test_a_refused_client_is_told() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"\x20\x02\x00\x05")
        await writer.drain()
        await reader.read()

    async with odd_broker(peer) as address:
        with pytest.raises(BrokerUnavailable, match=r"(?i)not authori[sz]ed"):
            async with Connection(address):
                pass


async def test_a_broker_that_hangs_up_instead_of_answering_is_told_at_once() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)

    async with odd_broker(peer) as address:
        with pytest.raises(BrokerUnavailable, match="closed the connection"):
            async with Connection(address):
                pass


async def test_giving_up_while_the_broker_says_nothing_leaves_nothing_behind() -> None:
    """A socket left open would be a ResourceWarning, which fails the test."""
    connected = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        await reader.read()

    async def connect(address: BrokerAddress) -> None:
        async with Connection(address):
            pass

    async with odd_broker(peer) as address, asyncio.timeout(20):
        connecting = asyncio.ensure_future(connect(address))
        await connected.wait()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting


async def test_a_broker_that_takes_nothing_is_not_waited_for() -> None:
    """``send`` refuses beyond its bound; ``publish`` waits, and ends when the connection does."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(CONNACK)
        await asyncio.Event().wait()

    async with odd_broker(peer) as address:
        connection = Connection(address)
        await connection.__aenter__()
        while connection.unsent < MAX_UNSENT:
            connection.send("x", bytes(100_000))
            await asyncio.sleep(0)
        with pytest.raises(BrokerUnavailable, match="wait to be sent"):
            connection.send("x", b"y")
        waiting = asyncio.ensure_future(connection.publish("x", b"y"))
        await asyncio.sleep(0)
        connection._close("enough")
        with pytest.raises(BrokerUnavailable, match="enough"):
            await waiting


async def test_a_publish_that_is_never_confirmed_ends_with_the_connection() -> None:
    heard = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(CONNACK)
        await reader.read(1000)
        heard.set()

    async with odd_broker(peer) as address, asyncio.timeout(20), Connection(address) as connection:
        with pytest.raises(BrokerUnavailable):
            await connection.publish("x", b"y", qos=1)
    assert heard.is_set()
