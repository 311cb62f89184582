"""The conformance suite of the client, against every broker that a private one may be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.client import BrokerAddress, Connection, Will
from runtime.mqtt.connection import MAX_UNREAD


def kept(address: BrokerAddress, name: str) -> Connection:
    """A connection whose session the broker keeps."""
    return Connection(address.named(name, clean_session=False))


async def send(address: BrokerAddress, topic: str, *payloads: bytes) -> None:
    """Publish from a connection of its own, each confirmed by the broker."""
    async with Connection(address) as connection:
        for payload in payloads:
            await connection.publish(topic, payload, qos=1)


async def settled(connection: Connection, name: str) -> None:
    """The broker has read everything that this connection sent so far."""
    await connection.publish(f"{name}/settled", b"", qos=1)


def payloads(messages: list[Any]) -> list[bytes]:
    return [message.payload for message in messages]


# -- messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1])
async def test_a_message_arrives_as_it_was_sent(address: BrokerAddress, name: str, receive: Any, qos: int) -> None:
    async with Connection(address) as listener, Connection(address) as speaker:
        await listener.subscribe(f"{name}/#", 1)
        await speaker.publish(f"{name}/a", b"\x00payload\xff", qos=qos)
        (message,) = await receive(listener, 1)
    assert (message.topic, message.payload, message.retained) == (f"{name}/a", b"\x00payload\xff", False)


async def test_a_large_message_and_an_empty_one_arrive(address: BrokerAddress, name: str, receive: Any) -> None:
    large = bytes(range(256)) * 40_000
    async with Connection(address) as connection:
        await connection.subscribe(name, 1)
        connection.send(name, large, qos=1)
        connection.send(name, b"", qos=1)
        assert payloads(await receive(connection, 2)) == [large, b""]


async def test_many_messages_arrive_in_order(address: BrokerAddress, name: str, receive: Any) -> None:
    sent = [b"%d" % number for number in range(400)]
    async with Connection(address) as listener, Connection(address) as speaker:
        await listener.subscribe(name, 1)
        for payload in sent:
            await speaker.publish(name, payload, qos=int(payload[-1:]) % 2)
        assert payloads(await receive(listener, len(sent))) == sent


async def test_a_retained_message_says_so_to_who_comes_later(address: BrokerAddress, name: str, receive: Any) -> None:
    async with Connection(address) as early, Connection(address) as late, Connection(address) as speaker:
        await early.subscribe(name, 1)
        await speaker.publish(name, b"x", qos=1, retain=True)
        assert [m.retained for m in await receive(early, 1)] == [False]
        await late.subscribe(name, 1)
        assert [m.retained for m in await receive(late, 1)] == [True]
        await speaker.publish(name, b"", qos=1, retain=True)


async def test_a_reader_that_lags_loses_nothing(address: BrokerAddress, name: str, receive: Any) -> None:
    count = MAX_UNREAD + 500
    async with Connection(address) as listener, Connection(address) as speaker:
        await listener.subscribe(name, 0)
        for number in range(count):
            await speaker.publish(name, b"%d" % number)
        await speaker.publish(name, b"end", qos=1)
        assert payloads(await receive(listener, count + 1)) == [b"%d" % n for n in range(count)] + [b"end"]


# -- acknowledgement ----------------------------------------------------------------------------------


async def test_what_is_not_acknowledged_comes_again(address: BrokerAddress, name: str, receive: Any) -> None:
    async with kept(address, name) as connection:
        await connection.subscribe(name, 1)
        await send(address, name, b"1", b"2")
        assert payloads(await receive(connection, 2)) == [b"1", b"2"]
    async with kept(address, name) as connection:
        again = await receive(connection, 2)
        assert [(m.payload, m.retained) for m in again] == [(b"1", False), (b"2", False)]
        for message in again:
            message.ack()
        await settled(connection, name)
    await _holds_nothing(address, name, receive)


async def test_what_is_acknowledged_does_not_come_again(address: BrokerAddress, name: str, receive: Any) -> None:
    async with kept(address, name) as connection:
        await connection.subscribe(name, 1)
        await send(address, name, b"1", b"2")
        for message in await receive(connection, 2):
            message.ack()
        await settled(connection, name)
    await _holds_nothing(address, name, receive)


async def test_only_what_was_left_out_comes_again(address: BrokerAddress, name: str, receive: Any) -> None:
    async with kept(address, name) as connection:
        await connection.subscribe(name, 1)
        await send(address, name, b"1", b"2", b"3", b"4")
        messages = await receive(connection, 4)
        messages[3].ack()
        messages[1].ack()
        await settled(connection, name)
    async with kept(address, name) as connection:
        again = await receive(connection, 2)
        assert payloads(again) == [b"1", b"3"]
        for message in again:
            message.ack()
        await settled(connection, name)
    await _holds_nothing(address, name, receive)


async def test_an_acknowledgement_never_crosses_a_reconnect(address: BrokerAddress, name: str, receive: Any) -> None:
    async with kept(address, name) as connection:
        await connection.subscribe(name, 1)
        await send(address, name, b"1")
        (early,) = await receive(connection, 1)
    async with kept(address, name) as connection:
        early.ack()
        assert payloads(await receive(connection, 1)) == [b"1"]
        early.ack()
    async with kept(address, name) as connection:
        early.ack()
        (again,) = await receive(connection, 1)
        assert again.payload == b"1"
        again.ack()
        await settled(connection, name)
    await _holds_nothing(address, name, receive)


async def test_what_came_while_away_waits_its_turn(address: BrokerAddress, name: str, receive: Any) -> None:
    async with kept(address, name) as connection:
        await connection.subscribe(name, 1)
        await send(address, name, b"1", b"2")
        await receive(connection, 2)
    await send(address, name, *[b"%d" % number for number in range(3, 30)])
    async with kept(address, name) as connection:
        again = await receive(connection, 29)
        assert [(m.payload, m.retained) for m in again] == [(b"%d" % number, False) for number in range(1, 30)]
        for message in again:
            message.ack()
        await send(address, name, b"30")
        (last,) = await receive(connection, 1)
        assert last.payload == b"30"
        last.ack()
        await settled(connection, name)
    await _holds_nothing(address, name, receive)


async def _holds_nothing(address: BrokerAddress, name: str, receive: Any) -> None:
    """The kept session delivers a new message first, so it held none; then end the session."""
    async with kept(address, name) as connection:
        await connection.subscribe(name, 1)
        await send(address, name, b"new")
        (message,) = await receive(connection, 1)
        assert message.payload == b"new"
    async with Connection(address.named(name)):
        pass


# -- the end of a connection ----------------------------------------------------------------------------


async def test_a_client_that_vanishes_has_a_last_will(address: BrokerAddress, name: str, receive: Any) -> None:
    async with Connection(address) as listener:
        await listener.subscribe(name, 1)
        async with Connection(address, will=Will(topic=name, payload=b"gone", retain=False)) as connection:
            connection._close("the cable was pulled")
        assert payloads(await receive(listener, 1)) == [b"gone"]


async def test_a_client_that_leaves_has_none(address: BrokerAddress, name: str, receive: Any) -> None:
    async with Connection(address) as listener:
        await listener.subscribe(name, 1)
        async with Connection(address, will=Will(topic=name, payload=b"gone", retain=False)):
            pass
        await send(address, name, b"after")
        assert payloads(await receive(listener, 1)) == [b"after"]


async def test_what_was_sent_before_leaving_arrives(address: BrokerAddress, name: str, receive: Any) -> None:
    async with Connection(address) as listener:
        await listener.subscribe(name, 1)
        async with Connection(address) as speaker:
            for number in range(50):
                speaker.send(name, b"%d" % number + bytes(20_000))
        assert len(await receive(listener, 50)) == 50


async def test_a_client_of_the_same_name_takes_over(address: BrokerAddress, name: str, receive: Any) -> None:
    """And then hears everything: amqtt by itself takes the end of the first for the end of the second."""
    async with kept(address, name) as first:
        await first.subscribe(name, 1)
        async with kept(address, name) as second:
            async with asyncio.timeout(20):
                await first.lost
            await second.subscribe(name, 1)
            for number in range(3):
                await send(address, name, b"%d" % number)
                (message,) = await receive(second, 1)
                assert message.payload == b"%d" % number
                message.ack()
    async with Connection(address.named(name)):
        pass


async def test_a_closed_connection_refuses_everything(address: BrokerAddress, name: str) -> None:
    async with Connection(address) as connection:
        pass
    assert connection.lost.done()
    with pytest.raises(BrokerUnavailable):
        connection.send(name, b"x")
    with pytest.raises(BrokerUnavailable):
        await connection.publish(name, b"x")
    with pytest.raises(BrokerUnavailable):
        await connection.subscribe(name)
    with pytest.raises(BrokerUnavailable):
        await anext(connection.messages())


async def test_a_broker_that_dies_wakes_everybody_who_waits(own: Any, name: str) -> None:
    async with Connection(own.address) as connection:
        await connection.subscribe(name, 1)
        reading = asyncio.ensure_future(anext(connection.messages()))
        own.kill()
        async with asyncio.timeout(20):
            with pytest.raises(BrokerUnavailable):
                await reading
            await connection.lost
    with pytest.raises(BrokerUnavailable):
        connection.check()


async def test_nobody_there_is_an_error(free: BrokerAddress) -> None:
    with pytest.raises(BrokerUnavailable, match=str(free.port)):
        async with Connection(free):
            pass
