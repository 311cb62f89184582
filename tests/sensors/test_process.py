"""Drivers as the processes they are: what they publish, how they end, what they say when they can't begin."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from runtime.abi.envelope import DECODERS, AudioEnvelope, FieldEnvelope, VisualEnvelope
from runtime.mqtt.broker import free_port
from runtime.mqtt.client import BrokerAddress
from sensors.camera.counter import read_counter

WAIT_S = 25.0
NOBODY = BrokerAddress(host="127.0.0.1", port=1)
Start = Callable[..., "subprocess.Popen[str]"]


def argument(driver: str, address: BrokerAddress, **more: Any) -> str:
    broker = {"host": address.host, "port": address.port}
    return json.dumps({"agent": "tested", "broker": broker, "channel": driver, **more})


def command(driver: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "sensors", driver, *arguments]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts drivers, and ends those that are left."""
    started: list[subprocess.Popen[str]] = []

    def begin(driver: str, address: BrokerAddress, **more: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command(driver, argument(driver, address, **more)), stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate(timeout=WAIT_S)


def refusal(*arguments: str, given: str = "") -> str:
    """The one line that a driver says when it can't begin."""
    done = subprocess.run(
        [sys.executable, "-m", "sensors", *arguments], capture_output=True, text=True, input=given, timeout=WAIT_S
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.mosquitto
async def test_the_camera_sends_frames_with_their_counter_in_the_pixels(broker, consumer, start) -> None:
    start("camera", broker.address)
    await consumer.until(lambda: len(consumer.arrivals) >= 10)
    envelope = DECODERS["visual"].decode(consumer.payloads["camera"])
    assert isinstance(envelope, VisualEnvelope)
    assert envelope.captured is not None
    image = cv2.imdecode(np.frombuffer(envelope.bytes, dtype=np.uint8), cv2.IMREAD_COLOR)
    assert read_counter(image) == envelope.captured.seq
    counters = consumer.counters("camera")
    assert counters == list(range(1, len(counters) + 1))


@pytest.mark.mosquitto
async def test_the_microphone_sends_blocks(broker, consumer, start) -> None:
    start("microphone", broker.address, fps=50)
    await consumer.until(lambda: len(consumer.arrivals) >= 10)
    envelope = DECODERS["audio"].decode(consumer.payloads["microphone"])
    assert isinstance(envelope, AudioEnvelope)
    assert envelope.duration_ms == 20


@pytest.mark.mosquitto
async def test_the_host_sends_a_field_on_each_of_its_channels(broker, consumer, start) -> None:
    start("host", broker.address, fps=20)
    expected = {"host.cpu", "host.memory", "host.disk", "host.net_rx", "host.net_tx"}
    await consumer.until(lambda: all(len(consumer.counters(channel)) >= 3 for channel in expected))
    assert isinstance(DECODERS["field"].decode(consumer.payloads["host.cpu"]), FieldEnvelope)
    for channel in expected:
        counters = consumer.counters(channel)
        assert counters == list(range(1, len(counters) + 1))


@pytest.mark.mosquitto
async def test_a_driver_killed_and_started_again_is_a_new_epoch(broker, consumer, start) -> None:
    for _ in range(2):
        before = len(consumer.arrivals)
        process = start("microphone", broker.address, fps=50)
        await consumer.until(lambda before=before: len(consumer.arrivals) > before + 5)
        process.kill()
    assert len({epoch for _, _, epoch, _ in consumer.arrivals}) == 2


@pytest.mark.mosquitto
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_when_asked_and_says_so(broker, consumer, start, number: signal.Signals) -> None:
    process = start("microphone", broker.address, fps=50)
    await consumer.until(lambda: len(consumer.arrivals) >= 3)
    process.send_signal(number)
    code = await asyncio.to_thread(process.wait, WAIT_S)
    assert code == 0
    await consumer.until(lambda: "stopped" in consumer.health())


@pytest.mark.mosquitto
async def test_it_ends_when_asked_though_the_broker_hangs(broker, consumer, start) -> None:
    process = start("microphone", broker.address, fps=50)
    await consumer.until(lambda: len(consumer.arrivals) >= 3)
    broker.pause()
    process.terminate()
    assert await asyncio.to_thread(process.wait, WAIT_S) == 0


def test_it_ends_when_asked_though_there_is_no_broker(start) -> None:
    process = start("microphone", BrokerAddress(host="127.0.0.1", port=free_port()), fps=50)
    wait_for_handler(process.pid)
    process.terminate()
    assert process.wait(WAIT_S) == 0


def wait_for_handler(pid: int) -> None:
    """Return when process ``pid`` catches SIGTERM."""
    bit = 1 << (signal.SIGTERM - 1)
    for _ in range(int(WAIT_S / 0.02)):
        status = Path(f"/proc/{pid}/status").read_text()
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught, 16) & bit:
            return
        select.select([], [], [], 0.02)
    raise TimeoutError


def test_it_dies_with_its_parent() -> None:
    """The parent in between starts a driver, tells its process id, and is killed."""
    told = argument("microphone", NOBODY)
    script = (
        "import json, os, subprocess, sys, time\n"
        "settings = json.dumps({**json.loads(sys.argv[1]), 'parent': os.getpid()})\n"
        "child = subprocess.Popen([sys.executable, '-m', 'sensors', 'microphone', settings])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, told], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    driver = os.pidfd_open(pid)
    wait_for_handler(pid)
    parent.kill()
    parent.communicate(timeout=WAIT_S)
    ended, _, _ = select.select([driver], [], [], WAIT_S)
    os.close(driver)
    assert ended


def test_a_parent_that_is_gone_already_ends_it(start) -> None:
    process = start("microphone", NOBODY, parent=2**22 - 1)
    assert process.wait(WAIT_S) == 0


def test_an_unknown_driver() -> None:
    assert refusal("lidar", argument("lidar", NOBODY)).startswith("SENSOR_INVALID: there is no driver 'lidar'")


def test_no_driver() -> None:
    assert refusal().startswith("SENSOR_INVALID")


def test_settings_that_are_no_json() -> None:
    assert refusal("camera", "{").startswith("SENSOR_INVALID")


def test_settings_on_standard_input(tmp_path: Path) -> None:
    line = refusal("camera", given=argument("camera", NOBODY, source=f"images:{tmp_path}/*.jpg"))
    assert line.startswith("SOURCE_UNREADABLE: no file matches")


def test_a_file_that_is_no_video(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"no film\n" * 1000)
    line = refusal("camera", argument("camera", NOBODY, source=f"video:{tmp_path}/film.mp4"))
    assert line.startswith("SOURCE_UNREADABLE")
    assert line.endswith("(try a file that ffmpeg plays, such as MP4)")


def test_a_wav_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF nonsense")
    line = refusal("microphone", argument("microphone", NOBODY, source=f"wav:{tmp_path}/a.wav"))
    assert line.startswith("SOURCE_UNREADABLE")


def test_only_the_camera_loads_opencv() -> None:
    script = (
        "import sys\n"
        "from sensors.settings import open_source, read_settings\n"
        "for driver in ('microphone', 'host'):\n"
        "    open_source(driver, read_settings(sys.argv[1]))\n"
        "sys.exit('cv2' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, argument("host", NOBODY)], check=True, timeout=WAIT_S)
