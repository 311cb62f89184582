"""The shared loop against a real broker: nothing is lost in silence, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
import pytest

from runtime.abi.envelope import FieldEnvelope
from runtime.abi.errors import SourceUnreadable
from runtime.abi.payloads import Reading
from runtime.mqtt.client import BrokerAddress
from sensors.driver import Driver
from sensors.sample import NoOptions, Sample, SourcePlan
from sensors.settings import DriverSettings
from sensors.spool import SpoolBounds

WAIT_S = 25.0
HASTY = SpoolBounds(patience_s=0.5, probe_s=0.2, probe_max_s=0.5)


class Counting:
    """A source whose reading is its counter; may fail at one."""

    default_fps: ClassVar[float] = 100.0
    Options: ClassVar[type[msgspec.Struct]] = NoOptions

    def __init__(self, plan: SourcePlan) -> None:
        self.channels = (plan.channel,)
        self.fails_at = int(plan.argument or 0)
        self.last = 0
        self.closed = False

    def capture(self, counter: int) -> list[Sample]:
        if counter == self.fails_at:
            raise SourceUnreadable("the device is gone")
        self.last = counter
        return [Sample(channel=self.channels[0], envelope=FieldEnvelope(reading=Reading(value=counter)))]

    def close(self) -> None:
        self.closed = True


def counting(*, fails_at: int = 0) -> Counting:
    return Counting(SourcePlan(channel="count", argument=str(fails_at), fps=100.0, options=NoOptions()))


def settings_for(address: BrokerAddress, **more: Any) -> DriverSettings:
    return DriverSettings(agent="tested", broker=address, channel="count", **more)


@asynccontextmanager
async def running(driver: Driver) -> AsyncIterator[asyncio.Task[None]]:
    """The driver runs inside, and is asked to end at the end."""
    task = asyncio.create_task(driver.run())
    try:
        yield task
    finally:
        driver.stop()
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait([task])


def accounted(consumer: Any) -> set[int]:
    """Every counter that arrived or was reported as a gap."""
    return set(consumer.counters("count")) | consumer.gaps("count")


async def soon(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not true():  # noqa: ASYNC110  # what another thread changes sets no event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("broker", ["amqtt"], indirect=True)
async def test_the_embedded_broker_will_do(broker, consumer) -> None:
    source = counting()
    async with running(Driver(settings_for(broker.address), source, fps=100)):
        await consumer.until(lambda: len(consumer.arrivals) >= 50)
    await consumer.until(lambda: accounted(consumer) == set(range(1, source.last + 1)))


@pytest.mark.mosquitto
async def test_every_counter_arrives_in_order(broker, consumer) -> None:
    driver = Driver(settings_for(broker.address), counting(), fps=100)
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 30)
    counters = consumer.counters("count")
    assert counters == list(range(1, len(counters) + 1))


@pytest.mark.mosquitto
async def test_at_the_end_what_was_captured_has_been_sent(broker, consumer) -> None:
    source = counting()
    driver = Driver(settings_for(broker.address), source, fps=100)
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 10)
    await consumer.until(lambda: consumer.counters("count")[-1] == source.last)
    assert source.closed


@pytest.mark.mosquitto
async def test_a_confirmed_stimulus_is_forgotten(broker, consumer) -> None:
    driver = Driver(settings_for(broker.address), counting(), fps=100)
    spool = driver.outbox.spools["count"]
    async with running(driver):
        await soon(lambda: (spool.oldest or 0) > 5)


@pytest.mark.mosquitto
async def test_the_broker_is_killed_and_restarted_and_nothing_is_missing(broker, consumer) -> None:
    source = counting()
    driver = Driver(settings_for(broker.address), source, fps=100, bounds=HASTY)
    spool = driver.outbox.spools["count"]
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 50)
        confirmed = consumer.counters("count")[-1]
        await soon(lambda: spool.oldest is None or spool.oldest > confirmed)
        broker.kill()
        captured = source.last
        await soon(lambda: source.last >= captured + 50)  # capture goes on
        await broker.start()
        await consumer.until(lambda: consumer.counters("count")[-1] >= captured + 100)
    await consumer.until(lambda: accounted(consumer) == set(range(1, source.last + 1)))
    assert not consumer.gaps("count")
    assert min(seq for connection, _, _, seq in consumer.arrivals if connection > 1) > confirmed


@pytest.mark.mosquitto
async def test_a_consumer_that_comes_back_late_sees_no_hole(broker, consumer) -> None:
    """The oldest is sent alone until it is confirmed, so a later one never overtakes it."""
    driver = Driver(settings_for(broker.address), counting(), fps=100, bounds=HASTY)
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 20)
        broker.kill()
        await broker.start()
        await consumer.until(lambda: consumer.connections > 1 and len(consumer.arrivals) >= 150)
    high = 0
    for seq in consumer.counters("count"):
        assert seq <= high + 1
        high = max(high, seq)


@pytest.mark.mosquitto
async def test_nothing_confirmed_for_a_while_and_it_is_sent_again(broker, consumer) -> None:
    consumer.confirming = False
    driver = Driver(settings_for(broker.address), counting(), fps=100, bounds=HASTY)
    async with running(driver):
        await consumer.until(lambda: consumer.counters("count")[:2] == [1, 1])
        consumer.confirming = True
        await consumer.until(lambda: 100 in consumer.counters("count"))
    assert set(consumer.counters("count")) >= set(range(1, 101))


@pytest.mark.mosquitto
async def test_what_the_spool_could_not_hold_is_reported(broker, consumer) -> None:
    source = counting()
    driver = Driver(settings_for(broker.address, spool_count=20), source, fps=200)
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 20)
        broker.kill()
        dropped = driver.outbox.spools["count"]
        await soon(lambda: dropped.dropped_count >= 30)
        await broker.start()
        until = source.last + 50
        await consumer.until(lambda: consumer.counters("count")[-1] >= until)
    await consumer.until(lambda: accounted(consumer) == set(range(1, source.last + 1)))
    assert consumer.gaps("count")


@pytest.mark.mosquitto
async def test_a_broker_that_comes_late_gets_everything(broker) -> None:
    source = counting()
    driver = Driver(settings_for(broker.address), source, fps=100, bounds=HASTY)
    async with running(driver):
        await soon(lambda: len(driver.outbox.spools["count"]) >= 20)
    assert len(driver.outbox.spools["count"]) == source.last


@pytest.mark.mosquitto
async def test_a_confirmation_of_another_start_means_nothing(broker, consumer) -> None:
    driver = Driver(settings_for(broker.address), counting(), fps=100)
    spool = driver.outbox.spools["count"]
    driver.outbox.hear("axon/tested/committed/count", b'{"epoch":"another","seq":1000}')
    driver.outbox.hear("axon/tested/committed/count", b'{"epoch":"%s","id":"b","seq":9}' % driver.epoch.encode())
    consumer.confirming = False
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 1)
        assert spool.oldest == 1


@pytest.mark.mosquitto
async def test_an_unreadable_confirmation_is_told_as_health(broker, consumer) -> None:
    driver = Driver(settings_for(broker.address), counting(), fps=100)
    driver.outbox.hear("axon/tested/committed/count", b"\xff nonsense")
    async with running(driver):
        await consumer.until(lambda: "confirmation_unreadable" in consumer.health())


@pytest.mark.mosquitto
async def test_the_source_id_travels_with_each_stimulus(broker, consumer) -> None:
    driver = Driver(settings_for(broker.address, id="left"), counting(), fps=100)
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 5)
    assert {source_id for _, _, source_id in consumer.high} == {"left"}


@pytest.mark.mosquitto
async def test_each_start_is_an_epoch_of_its_own(broker, consumer) -> None:
    for _ in range(2):
        async with running(Driver(settings_for(broker.address), counting(), fps=100)):
            before = len(consumer.arrivals)
            await consumer.until(lambda before=before: len(consumer.arrivals) > before + 3)
    epochs = {epoch for _, _, epoch, _ in consumer.arrivals}
    assert len(epochs) == 2


@pytest.mark.mosquitto
async def test_a_transient_channel_asks_for_no_confirmation(broker, consumer) -> None:
    consumer.confirming = False
    driver = Driver(settings_for(broker.address, transient=True), counting(), fps=100)
    async with running(driver):
        await consumer.until(lambda: len(consumer.arrivals) >= 50)
    counters = consumer.counters("count")
    assert counters == list(range(1, len(counters) + 1))


@pytest.mark.mosquitto
async def test_a_source_that_fails_ends_the_driver_with_its_error(broker, consumer) -> None:
    driver = Driver(settings_for(broker.address), counting(fails_at=10), fps=100)
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(SourceUnreadable):
            await driver.run()
    await consumer.until(lambda: "ended" in consumer.health())
    assert consumer.counters("count")[-1] == 9


@pytest.mark.mosquitto
async def test_a_late_capture_is_counted_and_told(broker, consumer) -> None:
    driver = Driver(settings_for(broker.address), counting(), fps=100)
    driver._missed(3)  # what the capture thread calls
    async with running(driver):
        await consumer.until(lambda: "late" in consumer.health())
