"""Brokers as real processes: a private mosquitto, and the embedded amqtt."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.mqtt.broker import BrokerPlan, find_mosquitto, plan
from runtime.mqtt.client import BrokerAddress, Connection, Incoming

PATIENCE_S = 25.0
NEEDS_MOSQUITTO = [
    pytest.mark.mosquitto,
    pytest.mark.skipif(not find_mosquitto(), reason="mosquitto is missing: sudo apt install mosquitto"),
]
KINDS = [pytest.param("mosquitto", marks=NEEDS_MOSQUITTO), "amqtt"]
_numbers = itertools.count()


class BrokerProcess:
    """A broker that can be killed and started again on its port."""

    def __init__(self, planned: BrokerPlan) -> None:
        self.kind = planned.kind
        self.address = planned.address
        self._argv = planned.argv or []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._argv)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection((self.address.host, self.address.port), timeout=1).close()
            except OSError:
                assert self._process.poll() is None, "the broker ended"
                assert time.monotonic() < deadline, "the broker doesn't listen"
                time.sleep(0.02)
            else:
                return

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)


def private(kind: str, folder: Path) -> BrokerPlan:
    """The plan of a private broker of that kind."""
    return plan("private", folder, mosquitto=None if kind == "mosquitto" else "")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], BrokerProcess]]:
    """One broker of a kind for many tests, which use names of their own."""
    started: dict[str, BrokerProcess] = {}

    def of_kind(kind: str) -> BrokerProcess:
        if kind not in started:
            started[kind] = BrokerProcess(private(kind, tmp_path_factory.mktemp(kind)))
            started[kind].start()
        return started[kind]

    yield of_kind
    for broker in started.values():
        broker.kill()


@pytest.fixture(
    params=[
        pytest.param(("mosquitto", "3.1.1"), marks=NEEDS_MOSQUITTO, id="mosquitto-3.1.1"),
        pytest.param(("mosquitto", "5"), marks=NEEDS_MOSQUITTO, id="mosquitto-5"),
        pytest.param(("amqtt", "3.1.1"), id="amqtt-3.1.1"),
    ]
)
def address(request: pytest.FixtureRequest, shared: Callable[[str], BrokerProcess]) -> BrokerAddress:
    """Every broker in every version of MQTT that it speaks."""
    kind, version = request.param
    broker = shared(kind)
    return BrokerAddress(host=broker.address.host, port=broker.address.port, version=version)


@pytest.fixture(params=KINDS)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker of this test alone, to be killed."""
    broker = BrokerProcess(private(request.param, tmp_path))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def name() -> str:
    """A name that no other test of this run uses."""
    return f"n{next(_numbers)}"


@pytest.fixture(scope="session")
def broker_process() -> type[BrokerProcess]:
    return BrokerProcess


@pytest.fixture
def free() -> BrokerAddress:
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return BrokerAddress(host="127.0.0.1", port=probe.getsockname()[1])


async def _receive(connection: Connection, count: int) -> list[Incoming]:
    """That many messages, as they come."""
    received: list[Incoming] = []
    async with asyncio.timeout(PATIENCE_S):
        async for message in connection.messages():
            received.append(message)
            if len(received) == count:
                break
    return received


@pytest.fixture
def receive() -> Callable[[Connection, int], object]:
    return _receive
