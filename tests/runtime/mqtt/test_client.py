"""A connection that comes back by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.client import BackOff, BrokerAddress, Connection, Will, keep_connected

FAST = BackOff(first_s=0.01, most_s=0.05)


@pytest.mark.parametrize(
    ("failures", "chance", "expected"),
    [(1, 0.0, 0.1), (1, 1.0, 0.05), (3, 0.0, 0.4), (7, 0.0, 5.0), (7, 1.0, 2.5), (100_000, 0.0, 5.0)],
)
def test_pauses_grow_to_a_bound(failures: int, chance: float, expected: float) -> None:
    assert BackOff().pause_s(failures, chance) == pytest.approx(expected)


async def test_it_ends_when_what_it_serves_ends(address: BrokerAddress, name: str) -> None:
    async def serve(connection: Connection) -> None:
        await connection.publish(name, b"x", qos=1)

    async with asyncio.timeout(20):
        await keep_connected(address, serve)


async def test_an_error_of_what_it_serves_is_raised(address: BrokerAddress) -> None:
    async def serve(connection: Connection) -> None:
        raise KeyError("mine")

    async with asyncio.timeout(20):
        with pytest.raises(KeyError):
            await keep_connected(address, serve)


async def test_it_comes_back_when_the_broker_was_killed(own: Any, name: str) -> None:
    """Also when it is away for a while, and whatever the served code waits for meanwhile."""
    served: asyncio.Queue[Connection] = asyncio.Queue()
    told: list[BrokerUnavailable | None] = []
    failed = asyncio.Event()

    async def serve(connection: Connection) -> None:
        await connection.subscribe(name, 1)
        await served.put(connection)
        await asyncio.Event().wait()

    def tell(error: BrokerUnavailable | None) -> None:
        told.append(error)
        if len([error for error in told if error is not None]) >= 3:
            failed.set()

    keeping = asyncio.ensure_future(keep_connected(own.address, serve, tell=tell, back_off=FAST))
    async with asyncio.timeout(30):
        await served.get()
        own.kill()
        await failed.wait()
        await asyncio.get_running_loop().run_in_executor(None, own.start)
        connection = await served.get()
        await connection.publish(name, b"back", qos=1)
        message = await anext(connection.messages())
        assert message.payload == b"back"
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert told[0] is None
    assert told[-1] is None


async def test_what_it_serves_is_cancelled_when_the_connection_is_lost(own: Any) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def serve(connection: Connection) -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    keeping = asyncio.ensure_future(keep_connected(own.address, serve, back_off=FAST))
    async with asyncio.timeout(20):
        await began.wait()
        own.kill()
        await ended.wait()
    keeping.cancel()
    await asyncio.wait([keeping])


async def test_cancelling_says_goodbye(address: BrokerAddress, name: str, receive: Any) -> None:
    """A last will would say that it vanished."""
    began = asyncio.Event()

    async def serve(connection: Connection) -> None:
        began.set()
        await asyncio.Event().wait()

    async with Connection(address) as listener:
        await listener.subscribe(name, 1)
        will = Will(topic=name, payload=b"gone", retain=False)
        keeping = asyncio.ensure_future(keep_connected(address, serve, will=will))
        async with asyncio.timeout(20):
            await began.wait()
            keeping.cancel()
            await asyncio.wait([keeping])
        await listener.publish(name, b"after", qos=1)
        (message,) = await receive(listener, 1)
    assert message.payload == b"after"
