"""Real agents with simulated actuators: what reaches them, and what an emergency stop holds through."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from axon.client import running
from runtime.abi.entries import decode
from runtime.kernel.stop import StopLatch
from runtime.log.reader import LogReader
from runtime.mqtt.broker import find_mosquitto, plan
from runtime.mqtt.client import Connection, parse_address

from ..conftest import LIMIT_S, Agent, until

STEER = """
[actuators.steer]
driver = "simulated"
channel = "steer"
safe = 0
min = -1
max = 1
ttl_ms = 400
trace = "steer.jsonl"
"""


class Robot:
    """An agent that steers, and what its actuator did."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def did(self) -> list[dict[str, Any]]:
        trace = self.agent.folder / "steer.jsonl"
        return [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []

    @property
    def last(self) -> dict[str, Any]:
        return self.did()[-1]

    def moves(self, value: float = 0.5) -> None:
        """The newest command is one with that value."""
        until(lambda: self.did() and (self.last["did"], self.last["value"]) == ("apply", value), f"it moves to {value}")

    def is_told(self, name: str, mode: str) -> None:
        until(lambda: self.agent.summary()["actuators"][name] == mode, f"{name} is {mode}")

    def say(self, words: Any) -> None:
        self.agent.ask("say", text=str(words))

    def stop(self) -> dict[str, Any]:
        report: dict[str, Any] = self.agent.ask("stop", by="ann", reason="smoke")
        assert report["stopped"]
        return report

    def clear(self) -> dict[str, Any]:
        report: dict[str, Any] = self.agent.ask("clear", by="ann")
        return report

    def outputs_go_on(self) -> None:
        """The brain steers on, whatever comes of it."""
        seq = self.agent.summary()["last_seq"]
        until(lambda: self.agent.summary()["last_seq"] > seq + 10, "outputs go on")

    def rests(self) -> None:
        """While outputs go on, nothing is applied."""
        before = len(self.did())
        self.outputs_go_on()
        assert [line for line in self.did()[before:] if line["did"] == "apply"] == []

    def messages(self, kind: str) -> list[Any]:
        rows = self.agent.rows()
        found = [decode(row.body, row.seq).data for row in rows if row.type == "axon:system:message"]
        return [data for data in found if data.type == kind]  # type: ignore[union-attr]

    def refused(self, code: str) -> list[Any]:
        return [data for data in self.messages("actuator") if data.facts["code"] == code]

    def commanded(self, id_: str) -> Any:
        """What is known of one command, once it is stored."""
        found = self.telemetry("kernel:actuator:commanded")
        return next((data for data in found if data["id"] == id_), None)

    def telemetry(self, type_: str) -> list[Any]:
        return [event.data for event in LogReader(self.agent.session).telemetry() if event.type == type_]


@pytest.fixture
def robot(make_agent: Callable[..., Agent]) -> Callable[..., Robot]:
    """A running robot of this test alone: ``robot(config=...)``."""

    def start(*, config: str = STEER, moving: bool = True, **options: Any) -> Robot:
        made = Robot(make_agent("helmsman", sensors=False, config=config).start(**options))
        if moving:
            made.moves()
        return made

    return start


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robot]:
    """One robot for the tests that its kernel survives."""
    folder = tmp_path_factory.mktemp("robot") / "agent"
    made = Robot(Agent(folder, cognet="helmsman", config=STEER, sensors=False).start())
    yield made
    assert made.agent.stop() == 0
    made.agent.forget()


@pytest.fixture
def rover(lasting: Robot) -> Robot:
    """The robot that lasts, moving at 0.5."""
    if lasting.agent.summary()["stopped"]:
        lasting.clear()
    lasting.say(0.5)
    lasting.moves()
    return lasting


# -- values -------------------------------------------------------------------------------------------


def test_a_durable_output_moves_what_it_is_bound_to_and_limits_hold(robot: Callable[..., Robot]) -> None:
    running = robot()
    running.say(7)
    running.moves(1.0)
    running.say(-7)
    running.moves(-1.0)
    assert running.agent.stop() == 0
    commands = {data["id"]: data for data in running.telemetry("kernel:actuator:commanded")}
    applied = [line for line in running.did() if line["did"] == "apply"]
    durable = {row.seq for row in running.agent.rows() if row.type == "cognet:output:field"}
    assert all(commands[line["command"]]["seq"] in durable for line in applied)
    assert {data.get("asked") for data in commands.values()} >= {None, 7.0, -7.0}


def test_words_are_no_value_and_the_output_stands(rover: Robot) -> None:
    rover.say("words")
    until(lambda: rover.refused("ACTUATOR_REFUSED"), "the refusal is in the log")
    (refusal,) = rover.refused("ACTUATOR_REFUSED")
    refused = next(row for row in rover.agent.rows() if row.seq == refusal.facts["seq"])
    assert (refusal.facts["actuator"], refused.type) == ("steer", "cognet:output:text")


def test_a_rule_denies_what_a_binding_allows(robot: Callable[..., Robot]) -> None:
    running = robot(config=f'{STEER}[policy."actuator.steer"]\ndecision = "deny"\n', moving=False)
    until(lambda: running.refused("POLICY_DENIED"), "it is refused")
    running.is_told("steer", "safe")
    running.rests()
    assert len(running.messages("actuator")) == 1


def test_of_a_burst_the_newest_wins(rover: Robot) -> None:
    before = len(rover.did())
    rover.say("burst")
    until(lambda: any(line["value"] == 0.199 for line in rover.did()[before:]), "its last value is applied")
    values = [line["value"] for line in rover.did()[before:] if line["did"] == "apply" and line["value"] < 0.2]
    assert values == sorted(values)


def test_a_brain_that_falls_silent_moves_nothing_for_longer_than_the_time_to_live(rover: Robot) -> None:
    rover.say("quiet")
    until(lambda: rover.last.get("why") == "nothing was heard in time", "it rests")
    rover.is_told("steer", "safe")


def test_outputs_that_become_durable_too_late_move_nothing(robot: Callable[..., Robot]) -> None:
    running = robot(config=f"{STEER}[log]\nsync_delay_ms = 600\n", moving=False)
    running.outputs_go_on()
    assert [line["did"] for line in running.did()] == ["safe"]
    until(lambda: running.refused("ACTUATOR_LATE"), "it is told")


def test_at_the_shutdown_actuators_rest_before_anything_else_ends(robot: Callable[..., Robot]) -> None:
    running = robot()
    assert running.agent.stop() == 0
    safe = [line for line in running.did() if line["did"] == "safe"]
    assert [line["why"] for line in safe][1:] == ["the kernel asked for it", "it is asked to end", "it ends"]
    ended = next(
        event.mono_us
        for event in LogReader(running.agent.session).telemetry()
        if event.type == "kernel:process:ended" and event.data["name"] == "brain"
    )
    assert safe[1]["mono_us"] < ended
    assert [line["did"] for line in running.did()][-3:] == ["safe"] * 3


def test_a_kernel_that_hung_sends_nothing_late_when_it_goes_on(rover: Robot) -> None:
    assert rover.agent.process
    rover.agent.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: rover.last.get("why") == "nothing was heard in time", "it rests")
        before = len(rover.did())
    finally:
        rover.agent.process.send_signal(signal.SIGCONT)
    until(lambda: len(rover.did()) > before + 3, "it moves again")
    lines = rover.did()[before : before + 3]
    until(lambda: all(rover.commanded(line["command"]) for line in lines), "telemetry is stored")
    said = {row.seq: decode(row.body, row.seq).time.mono_us for row in rover.agent.rows()}
    for line in lines:
        assert line["mono_us"] - said[rover.commanded(line["command"])["seq"]] <= 400_000


# -- the emergency stop -------------------------------------------------------------------------------


def test_a_stop_is_confirmed_and_only_a_person_lets_it_move_again(rover: Robot) -> None:
    report = rover.stop()
    assert (report["confirmed"], report["unconfirmed"], report["recorded"]) == (["steer"], [], True)
    rover.rests()
    rover.say(0.75)
    rover.rests()
    assert rover.clear()["confirmed"] == ["steer"]
    rover.moves(0.75)
    assert rover.refused("STOPPED")


def test_a_driver_that_hangs_is_named(rover: Robot) -> None:
    pid = rover.agent.pid("actuator:steer")
    os.kill(pid, signal.SIGSTOP)
    try:
        assert rover.stop()["unconfirmed"] == ["steer"]
    finally:
        os.kill(pid, signal.SIGCONT)
    rover.is_told("steer", "stopped")


def test_a_stop_over_mqtt_reaches_the_actuators(rover: Robot) -> None:
    async def send() -> None:
        address = parse_address(running(rover.agent.folder).broker)
        async with asyncio.timeout(LIMIT_S), Connection(address) as connection:
            await connection.publish("axon/test/stop", b"{}", qos=1)

    asyncio.run(send())
    rover.is_told("steer", "stopped")
    rover.rests()


def test_a_stop_holds_while_the_brain_spins(robot: Callable[..., Robot]) -> None:
    running = robot(config=f"{STEER}[brain]\nheartbeat_s = 60\n")
    running.say("spin")
    until(lambda: running.last["did"] == "safe", "nothing is heard of it")
    assert running.stop()["confirmed"] == ["steer"]
    assert running.last["why"] == "emergency stop 1"


def test_a_stop_holds_while_the_capsule_hangs(robot: Callable[..., Robot]) -> None:
    """A C call that holds the interpreter; the brain steers on meanwhile, and the stop doesn't wait for the block."""
    running = robot(config=f"{STEER}[capsule]\ntimeout_s = 60\n")
    with ThreadPoolExecutor(1) as side:
        block = side.submit(running.agent.ask, "exec", code="sum(range(10**12))", timeout_s=120)
        actions = lambda: [row for row in running.agent.rows() if row.type == "cognet:action:python"]  # noqa: E731
        until(lambda: bool(actions()), "the block is written down")
        running.outputs_go_on()
        assert running.stop()["confirmed"] == ["steer"]
        running.rests()
        assert not block.done()
        running.agent.kill("capsule")
        assert block.result(60)["error"]["kind"] == "exception"


def test_a_stop_is_held_by_a_driver_that_starts_again(rover: Robot) -> None:
    rover.stop()
    reason = rover.last["why"]
    assert reason.startswith("emergency stop")
    rover.agent.kill("actuator:steer")
    until(lambda: [line.get("why") for line in rover.did()].count(reason) == 2, "it is told again")
    rover.rests()


def test_a_stop_holds_through_the_death_of_the_broker(rover: Robot) -> None:
    rover.stop()
    restarts = rover.agent.restarts("broker")
    rover.agent.kill("broker")
    until(lambda: rover.agent.restarts("broker") > restarts, "the broker is back")
    rover.is_told("steer", "stopped")
    rover.rests()
    assert rover.clear()["confirmed"] == ["steer"]
    rover.moves()


def test_a_stop_holds_through_the_death_of_the_kernel(robot: Callable[..., Robot]) -> None:
    running = robot()
    running.stop()
    running.agent.kill("kernel")
    running.agent.start()
    running.is_told("steer", "stopped")
    running.rests()
    assert running.clear()["confirmed"] == ["steer"]
    running.moves()


def test_values_flow_again_when_a_killed_broker_is_back(rover: Robot) -> None:
    restarts = rover.agent.restarts("broker")
    rover.agent.kill("broker")
    until(lambda: rover.agent.restarts("broker") > restarts, "the broker is back")
    rover.say(0.25)
    rover.moves(0.25)


# -- a device of somebody else's ----------------------------------------------------------------------


class Elsewhere:
    """A broker, and drivers that aren't the kernel's children."""

    def __init__(self, folder: Path) -> None:
        self._started: list[subprocess.Popen[bytes]] = []
        planned = plan("private", folder / "broker", mosquitto=find_mosquitto())
        assert planned.argv
        self.port = planned.address.port
        self._begin(planned.argv)

    def drive(self, trace: Path) -> None:
        broker = {"host": "127.0.0.1", "port": self.port}
        settings = {"agent": "test", "name": "steer", "broker": broker, "safe": 0.0, "trace": str(trace)}
        self._begin([sys.executable, "-m", "actuators", "simulated", json.dumps(settings)])

    def _begin(self, argv: list[str]) -> None:
        self._started.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def end(self) -> None:
        for each in self._started:
            each.kill()
            each.wait(LIMIT_S)


@pytest.fixture
def remote(robot: Callable[..., Robot], tmp_path: Path) -> Iterator[Robot]:
    """A moving robot whose actuator and broker don't die with its kernel."""
    if not find_mosquitto():
        pytest.skip("mosquitto is missing: apt install mosquitto")
    place = Elsewhere(tmp_path)
    config = STEER.replace('"simulated"', '"mqtt"').replace("trace", "#")
    made = robot(config=f'[broker]\nurl = "mqtt://127.0.0.1:{place.port}"\n{config}', moving=False)
    place.drive(made.agent.folder / "steer.jsonl")
    made.moves()
    yield made
    place.end()


@pytest.mark.mosquitto
def test_when_the_kernel_is_killed_it_rests_when_the_time_is_over(remote: Robot) -> None:
    remote.agent.kill("kernel")
    until(lambda: remote.last.get("why") == "nothing was heard in time", "it rests")
    remote.agent.start()
    remote.moves()


@pytest.mark.mosquitto
def test_a_stop_whose_record_is_lost_is_taken_over_from_the_actuator(remote: Robot) -> None:
    remote.stop()
    remote.agent.kill("kernel")
    (remote.agent.folder / "data" / "stop.json").unlink()
    remote.agent.start()
    until(lambda: remote.agent.summary()["stopped"], "the stop is latched again")
    remote.rests()
    until(lambda: StopLatch.load(remote.agent.folder / "data").latched, "it is in the file again")
    assert remote.clear()["confirmed"] == ["steer"]
    remote.moves()
    assert [data.facts["by"] for data in remote.messages("stop")] == ["ann", "actuator steer"]


@pytest.mark.mosquitto
def test_a_clearing_that_an_actuator_missed_is_told_later(remote: Robot) -> None:
    remote.stop()
    assert remote.agent.stop() == 0
    latch = StopLatch.load(remote.agent.folder / "data")
    latch.clear(by="ann")
    latch.save()
    remote.agent.start()
    remote.moves()
    assert not remote.agent.summary()["stopped"]
