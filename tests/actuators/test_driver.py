"""The simulated actuator as a process, at a real broker: when it moves, and every reason for which it rests."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.abi.clock import mono_us

from .conftest import WAIT_S, pass_by, settings

pytestmark = pytest.mark.mosquitto


def moving(state: Any) -> bool:
    return bool(state.mode == "moving")


def safe(state: Any) -> bool:
    return bool(state.mode == "safe")


def stopped(state: Any) -> bool:
    return bool(state.mode == "stopped")


async def start_moving(driver: Any, speak: Any, **changes: Any) -> tuple[Any, Any]:
    """A driver that applies 0.5 for a minute."""
    speaker, process = await speak(), driver(**changes)
    await speaker.until(safe)
    id_ = speaker.set(0.5)
    await speaker.until(lambda state: moving(state) and state.last == id_)
    return speaker, process


@pytest.mark.parametrize("broker", ["mosquitto", pytest.param("amqtt", id="amqtt")], indirect=True)
async def test_it_applies_what_it_hears(driver: Any, speak: Any) -> None:
    speaker, process = await start_moving(driver, speak)
    assert [line["did"] for line in process.did()] == ["safe", "apply"]
    assert speaker.states[-1].value == 0.5


async def test_it_begins_with_the_safe_action_before_it_hears_anybody(driver: Any) -> None:
    assert (await driver().until(lambda line: line["did"] == "safe"))["why"] == "it starts"


async def test_it_rests_when_the_time_is_over(driver: Any, speak: Any) -> None:
    speaker, process = await speak(), driver()
    await speaker.until(safe)
    id_ = speaker.set(0.5, ttl_ms=150)
    line = await process.until(lambda line: line.get("why") == "nothing was heard in time")
    assert line["value"] == 0.0
    await speaker.until(lambda state: safe(state) and state.last == id_)


async def test_a_newer_value_begins_the_time_again(driver: Any, speak: Any) -> None:
    speaker, process = await speak(), driver()
    await speaker.until(safe)
    for number in range(5):
        speaker.set(number / 10, ttl_ms=60_000 if number else 1_000)
    await process.until(lambda line: line["value"] == 0.4)
    first = next(line for line in process.did() if line["did"] == "apply")
    await pass_by(first["mono_us"] + 1_100_000)
    assert [line["did"] for line in process.did()].count("safe") == 1


async def test_a_value_that_comes_too_late_moves_nothing(driver: Any, speak: Any) -> None:
    speaker, process = await speak(), driver()
    await speaker.until(safe)
    speaker.set(0.5, ttl_ms=100, said_us=mono_us() - 2_000_000)
    assert "too late" in (await speaker.until(lambda state: state.refused == 1)).why
    assert [line["did"] for line in process.did()] == ["safe"]


async def test_a_stop_is_taken_confirmed_and_held(driver: Any, speak: Any) -> None:
    speaker, process = await start_moving(driver, speak)
    speaker.say(speaker.device.stop(4))
    assert (await speaker.until(stopped)).stop == 4
    speaker.set(0.7)
    assert "emergency stop" in (await speaker.until(lambda state: state.refused == 1)).why
    assert process.did()[-1]["why"] == "emergency stop 4"
    speaker.say(speaker.device.release(4, mono_us()))
    await speaker.until(safe)
    speaker.set(0.7)
    await speaker.until(moving)


async def test_it_rests_when_its_broker_is_gone(broker: Any, driver: Any, speak: Any) -> None:
    speaker, process = await speak(), driver()
    await speaker.until(safe)
    speaker.set(0.5, ttl_ms=1_000)
    await speaker.until(moving)
    broker.kill()
    await process.until(lambda line: line.get("why") == "nothing was heard in time")


async def test_what_a_hanging_broker_kept_moves_nothing_when_it_goes_on(broker: Any, driver: Any, speak: Any) -> None:
    speaker, process = await speak(), driver()
    await speaker.until(safe)
    broker.signal(signal.SIGSTOP)
    speaker.set(0.5, ttl_ms=200)
    await pass_by(mono_us() + 400_000)
    broker.signal(signal.SIGCONT)
    assert "too late" in (await speaker.until(lambda state: state.refused == 1)).why
    assert [line["did"] for line in process.did()] == ["safe"]


async def test_a_stop_holds_through_a_restart_of_the_broker(broker: Any, driver: Any, speak: Any) -> None:
    speaker, process = await start_moving(driver, speak)
    speaker.say(speaker.device.stop(1))
    await speaker.until(stopped)
    broker.kill()
    await broker.start()
    again = await speak(boot="next")
    assert (await again.until(stopped)).stop == 1
    again.set(0.9)
    await again.until(lambda state: state.refused > 0)
    assert process.did()[-1]["did"] == "safe"


async def test_a_new_start_obeys_nothing_that_was_meant_for_the_last(driver: Any, speak: Any) -> None:
    speaker, process = await start_moving(driver, speak)
    old = speaker.device.set_value(0.9, unit=None, said_us=mono_us(), ttl_ms=60_000, seq=1)
    epoch = speaker.states[-1].epoch
    process.end()
    driver()
    await speaker.until(lambda state: state.epoch != epoch and safe(state))
    speaker.say(old)
    assert "earlier start" in (await speaker.until(lambda state: state.refused == 1)).why


async def test_a_retained_command_moves_nothing_at_a_start(driver: Any, speak: Any) -> None:
    speaker, process = await start_moving(driver, speak)
    value = speaker.device.set_value(0.9, unit=None, said_us=mono_us(), ttl_ms=60_000, seq=1)
    speaker.send(msgspec.json.encode(value), retain=True)
    await process.until(lambda line: line["value"] == 0.9)
    process.end()
    driver()
    await speaker.until(lambda state: "retained" in state.why)


GARBAGE = (b"", b"{", b"null", b"[" * 100_000, b'{"do":"dance"}', b'{"do":"stop","stop":0}', b"\xff\xfe", b"9" * 9000)


async def test_garbage_is_counted_and_moves_nothing(driver: Any, speak: Any) -> None:
    speaker, process = await speak(), driver()
    await speaker.until(safe)
    for payload in GARBAGE:
        speaker.send(payload)
    assert "unreadable" in (await speaker.until(lambda state: state.refused == len(GARBAGE))).why
    assert [line["did"] for line in process.did()] == ["safe"]


async def test_killed_it_is_told_as_gone(driver: Any, speak: Any) -> None:
    speaker, process = await start_moving(driver, speak)
    process.process.kill()
    await speaker.until(lambda state: state.mode == "gone")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_asked_to_end_it_rests_and_says_goodbye(driver: Any, speak: Any, number: signal.Signals) -> None:
    speaker, process = await start_moving(driver, speak)
    process.process.send_signal(number)
    assert await asyncio.to_thread(process.process.wait, WAIT_S) == 0
    assert process.did()[-1]["did"] == "safe"
    gone = await speaker.until(lambda state: state.mode == "gone")
    assert gone.value == 0.0


async def test_asked_to_end_it_ends_though_the_broker_hangs(broker: Any, driver: Any, speak: Any) -> None:
    _, process = await start_moving(driver, speak)
    broker.signal(signal.SIGSTOP)
    process.process.terminate()
    assert await asyncio.to_thread(process.process.wait, WAIT_S) == 0
    assert process.did()[-1]["did"] == "safe"


async def test_when_its_parent_is_killed_it_rests_and_ends(broker: Any, speak: Any, tmp_path: Path) -> None:
    script = (
        "import json, os, subprocess, sys\n"
        "settings = json.dumps({**json.loads(sys.argv[1]), 'parent': os.getpid()})\n"
        "child = subprocess.Popen([sys.executable, '-m', 'actuators', 'simulated', settings])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    speaker = await speak()
    argv = [sys.executable, "-c", script, settings(tmp_path / "trace", broker.address)]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - it returns at once
    assert parent.stdout is not None
    child = os.pidfd_open(int(await asyncio.to_thread(parent.stdout.readline)))
    await speaker.until(safe)
    speaker.set(0.5)
    await speaker.until(moving)
    parent.kill()
    parent.communicate(timeout=WAIT_S)
    ended, _, _ = await asyncio.to_thread(select.select, [child], [], [], WAIT_S)
    os.close(child)
    assert ended
    assert json.loads((tmp_path / "trace").read_text().splitlines()[-1])["did"] == "safe"
