"""Real brokers, drivers as the processes they are, and the kernel's side of the connection."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.abi import topics
from runtime.abi.actuators import STATE_DECODER, ActuatorState, Command
from runtime.abi.clock import mono_us
from runtime.kernel.actuators.device import Device
from runtime.mqtt.broker import BrokerPlan, find_mosquitto, plan, wait_until_up
from runtime.mqtt.client import BrokerAddress, Connection

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

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(WAIT_S)
            self._process = None


class Speaker:
    """Speaks to one actuator as the kernel does, and hears its states."""

    def __init__(self, connection: Connection, name: str, boot: str) -> None:
        self._connection = connection
        self._name = name
        self._changed = asyncio.Condition()
        self.device = Device(boot)
        self.states: list[ActuatorState] = []

    async def listen(self) -> None:
        await self._connection.subscribe(topics.actuator_state(AGENT, self._name))
        async for message in self._connection.messages():
            message.ack()
            async with self._changed:
                self.states.append(STATE_DECODER.decode(message.payload))
                self.device.heard(self.states[-1], mono_us())
                self._changed.notify_all()

    async def until(self, true: Callable[[ActuatorState], bool], *, new: bool = False) -> ActuatorState:
        """The first state from now on, or the last one known, that is so."""
        start = len(self.states) if new else max(len(self.states) - 1, 0)
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(lambda: any(map(true, self.states[start:])))
        return next(state for state in self.states[start:] if true(state))

    def say(self, command: Command) -> None:
        self.send(msgspec.json.encode(command))

    def send(self, payload: bytes, *, retain: bool = False) -> None:
        self._connection.send(topics.actuator_command(AGENT, self._name), payload, qos=1, retain=retain)

    def set(self, value: Any, *, ttl_ms: int = 60_000, said_us: int | None = None) -> str:
        """Send a value; returns its id."""
        said = mono_us() if said_us is None else said_us
        command = self.device.set_value(value, unit=None, said_us=said, ttl_ms=ttl_ms, seq=1)
        self.say(command)
        return command.id


def settings(trace: Path, address: BrokerAddress, **changes: Any) -> str:
    """What a driver of the arm is started with."""
    broker = {"host": address.host, "port": address.port}
    given = {"agent": AGENT, "name": "arm", "broker": broker, "safe": 0.0, "trace": str(trace)}
    return json.dumps(given | changes)


class Driver:
    """The simulated actuator as a process, and the trace of what it did."""

    def __init__(self, folder: Path, address: BrokerAddress, **changes: Any) -> None:
        self.trace = folder / "trace.jsonl"
        argv = [sys.executable, "-m", "actuators", "simulated", settings(self.trace, address, **changes)]
        self.process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)

    def did(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.trace.read_text().splitlines()] if self.trace.exists() else []

    async def until(self, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            while not (found := [line for line in self.did() if true(line)]):  # noqa: ASYNC110 - another process writes
                await asyncio.sleep(0.02)
        return found[-1]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=WAIT_S)


async def pass_by(moment_us: int) -> None:
    """Return when that moment of the monotonic clock is over."""
    await asyncio.sleep(max(moment_us - mono_us(), 0) / 1e6)


@pytest.fixture
async def broker(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Broker]:
    """A running mosquitto, or what the test names as the parameter: ``amqtt``."""
    program = "" if getattr(request, "param", "mosquitto") == "amqtt" else find_mosquitto()
    if not program and not hasattr(request, "param"):
        pytest.skip("mosquitto is missing: apt install mosquitto")
    made = Broker(plan("private", tmp_path / "broker", mosquitto=program))
    await made.start()
    yield made
    made.kill()


@pytest.fixture
def driver(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Starts drivers, and ends those that are left."""
    started: list[Driver] = []

    def start(**changes: Any) -> Driver:
        started.append(Driver(tmp_path, broker.address, **changes))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
async def speak(broker: Broker) -> AsyncIterator[Callable[..., Any]]:
    """Connects as a kernel: ``await speak("arm")``."""
    tasks: list[asyncio.Task[None]] = []
    connections: list[Connection] = []

    async def connect(name: str = "arm", boot: str = "b") -> Speaker:
        connection = await Connection(broker.address).__aenter__()
        connections.append(connection)
        speaker = Speaker(connection, name, boot)
        tasks.append(asyncio.create_task(speaker.listen()))
        return speaker

    yield connect
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for connection in connections:
        await connection.__aexit__(None, None, None)
