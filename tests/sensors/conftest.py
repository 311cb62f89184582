"""A real broker that can be killed and restarted, and a consumer that confirms as the kernel does."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from runtime.abi import topics
from runtime.abi.envelope import DECODERS, REPORT_DECODER, Committed, GapReport, SensorReport
from runtime.mqtt.broker import BrokerPlan, find_mosquitto, plan, wait_until_up
from runtime.mqtt.client import BrokerAddress, Connection, keep_connected

AGENT = "tested"
WAIT_S = 25.0


def spawn_quietly(argv: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Broker:
    """A broker on a free loopback port, which it keeps."""

    def __init__(self, planned: BrokerPlan) -> None:
        self._plan = planned
        self._process: subprocess.Popen[bytes] | None = None
        self.address: BrokerAddress = planned.address

    async def start(self) -> None:
        assert self._plan.argv
        self._process = spawn_quietly(self._plan.argv)
        await wait_until_up(self.address)

    def pause(self) -> None:
        """It hangs: the connections stay, nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(WAIT_S)
            self._process = None


class Consumer:
    """Receives stimuli as the kernel would: in order, holes counted, confirmed while ``confirming``."""

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._changed = asyncio.Condition()
        self.confirming = True
        self.connections = 0
        self.connected = asyncio.Event()
        self.arrivals: list[tuple[int, str, str, int]] = []  # connection, channel, epoch, seq
        self.payloads: dict[str, bytes] = {}
        self.high: dict[tuple[str, str, str | None], int] = {}
        self.reports: list[SensorReport] = []

    async def run(self) -> None:
        await keep_connected(self._address, self._serve)

    async def _serve(self, connection: Connection) -> None:
        await connection.subscribe(topics.sensor_filter(AGENT))
        await connection.subscribe(topics.stimulus_filter(AGENT))
        self.connections += 1
        self.connected.set()
        async for message in connection.messages():
            message.ack()
            async with self._changed:
                self._take(connection, message.topic, message.payload)
                self._changed.notify_all()

    def _take(self, connection: Connection, topic: str, payload: bytes) -> None:
        if "/sensor/" in topic:
            self.reports.append(REPORT_DECODER.decode(payload))
            return
        kind, channel = topics.parse_stimulus(AGENT, topic)
        envelope = DECODERS[kind].decode(payload)
        assert envelope.captured is not None
        captured = envelope.captured
        self.payloads[channel] = payload
        self.arrivals.append((self.connections, channel, captured.epoch, captured.seq))
        if self.confirming:
            key = channel, captured.epoch, envelope.id
            self.high[key] = max(self.high.get(key, 0), captured.seq)
            said = Committed(id=envelope.id, epoch=captured.epoch, seq=self.high[key])
            connection.send(topics.committed(AGENT, channel), msgspec.json.encode(said), qos=1)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something to be so after a message; fails after ``WAIT_S``."""
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(true)

    def counters(self, channel: str) -> list[int]:
        return [seq for _, name, _, seq in self.arrivals if name == channel]

    def gaps(self, channel: str) -> set[int]:
        told = [r for r in self.reports if isinstance(r, GapReport) and r.channel == channel]
        return {seq for gap in told for seq in range(gap.first, gap.last + 1)}

    def health(self) -> set[str]:
        return {r.state for r in self.reports if not isinstance(r, GapReport)}


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A mosquitto, or what the test names as the parameter: ``amqtt``."""
    program = "" if getattr(request, "param", "mosquitto") == "amqtt" else find_mosquitto()
    if not program and not hasattr(request, "param"):
        pytest.skip("mosquitto is missing: apt install mosquitto")
    made = Broker(plan("private", tmp_path / "broker", mosquitto=program))
    yield made
    made.kill()


@pytest.fixture
async def consumer(broker: Broker) -> AsyncIterator[Consumer]:
    """Connected to the broker, which is up."""
    await broker.start()
    made = Consumer(broker.address)
    running = asyncio.create_task(made.run())
    async with asyncio.timeout(WAIT_S):
        await made.connected.wait()
    yield made
    running.cancel()
    await asyncio.wait([running])
