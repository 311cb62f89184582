"""Restart is a non-event: SIGKILL to the kernel, the brain, a driver or the broker, at any moment."""

from __future__ import annotations

import hashlib
import json
import random
import socket
import threading
import time
from collections.abc import Callable

import msgspec
import pytest

from axon.client import running
from capsule.frames import Hello, frame, receive_frame
from runtime.abi.entries import decode
from runtime.abi.link import Row
from runtime.abi.observe import BUS_PROTOCOL, Durable, FromBus, Subscribe
from runtime.log.verify import verify

from .conftest import LIMIT_S, Agent, until

MakeAgent = Callable[..., Agent]


class Witness:
    """An observer on the bus: what it has seen was durable, so it must be in the log for ever."""

    def __init__(self, agent: Agent) -> None:
        self.rows: dict[int, Row] = {}
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LIMIT_S)
        self._socket.connect(running(agent.folder).bus)
        self._send(Hello(protocol=BUS_PROTOCOL))
        receive_frame(self._socket)
        self._send(Subscribe())
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def leave(self) -> None:
        """Wait for the kernel's end."""
        self._thread.join(LIMIT_S)
        self._socket.close()

    def _send(self, message: msgspec.Struct) -> None:
        self._socket.sendall(frame(msgspec.msgpack.encode(message)))

    def _watch(self) -> None:
        decoder = msgspec.msgpack.Decoder(FromBus)
        try:
            while (payload := receive_frame(self._socket)) is not None:
                message = decoder.decode(payload)
                if isinstance(message, Durable):
                    self.rows |= {row.seq: row for row in message.rows}
        except (OSError, ValueError):
            return  # the kernel was killed in the middle of a message


def check_log(agent: Agent) -> list[Row]:
    """The log is whole: no hole, the chain holds, and every mirror the brain held was the log."""
    found = verify(agent.session)
    assert found.ok, found
    rows = agent.rows()
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    check_mirrors(rows)
    return rows


def check_mirrors(rows: list[Row]) -> None:
    """What the brain said its resident model was, at each moment, is what the log says it had to be."""
    entries = [decode(row.body, row.seq) for row in rows]
    digest, upto, mirrors = hashlib.sha256(), 0, 0
    for entry in entries:
        if entry.type != "cognet:output:text" or getattr(entry.data, "channel", "") != "mirror":
            continue
        said = json.loads(entry.data.content)  # type: ignore[union-attr]
        if said["count"] < upto:
            digest, upto = hashlib.sha256(), 0  # another life of the brain
        for each in entries[upto : said["count"]]:
            digest.update(f"{each.time.seq}:{each.id};".encode())
        upto = said["count"]
        assert (said["seq"], said["digest"]) == (upto, digest.hexdigest())
        mirrors += 1
    assert mirrors


def test_a_killed_kernel_resumes_with_all_that_was_durable(make_agent: MakeAgent) -> None:
    agent = make_agent()
    chance = random.Random(4)
    seen: dict[int, Row] = {}
    said: list[int] = []
    for _ in range(3):
        agent.start()
        witness = Witness(agent)
        said.append(agent.ask("say", text=f"hello {len(said)}")["seq"])
        time.sleep(chance.uniform(0.3, 1.0))
        agent.kill("kernel")
        witness.leave()
        assert witness.rows
        seen |= witness.rows
    agent.start()
    boot = agent.summary()["boot"]
    assert not boot["clean_before"]
    assert boot["replayed"] >= max(seen)
    assert agent.stop() == 0
    rows = {row.seq: row for row in check_log(agent)}
    assert {seq: rows[seq] for seq in seen} == seen
    assert [decode(rows[seq].body, seq).data.content for seq in said] == ["hello 0", "hello 1", "hello 2"]  # type: ignore[union-attr]
    assert sum(row.type == "axon:system:message" for row in rows.values()) >= 3


@pytest.mark.parametrize("victim", ["brain", "camera", "host"])
def test_a_killed_child_is_started_again_and_the_log_never_pauses(make_agent: MakeAgent, victim: str) -> None:
    agent = make_agent().start()
    pid = until(lambda: agent.pid(victim), f"{victim} is there")
    before = agent.summary()["last_seq"]
    agent.kill(victim)
    until(lambda: agent.pid(victim) not in (0, pid), f"{victim} is there again")
    until(lambda: agent.restarts(victim) == 1, "the restart is counted")
    wakes = agent.summary()["wakes"]["admitted"]
    until(lambda: agent.summary()["wakes"]["admitted"] > wakes + 15, "the brain goes on waking")
    seen = agent.committed("camera")
    until(lambda: agent.committed("camera") > seen, "the camera goes on delivering")
    assert agent.summary()["last_seq"] > before
    assert agent.stop() == 0
    check_log(agent)


def test_a_killed_broker_is_started_again_and_no_counter_is_missing(make_agent: MakeAgent, broker: str) -> None:
    agent = make_agent(config=f'[broker]\nurl = "{broker}"').start()
    until(lambda: agent.committed("camera") > 5, "frames arrive")
    agent.kill("broker")
    until(lambda: agent.restarts("broker") == 1, "the restart is counted")
    seen = agent.committed("camera")
    until(lambda: agent.committed("camera") > seen + 10, "frames arrive again")
    assert agent.stop() == 0
    counters = [
        entry.data.captured.seq  # type: ignore[union-attr]
        for entry in (decode(row.body, row.seq) for row in check_log(agent) if row.type == "cognet:stimulus:visual")
    ]
    assert counters == list(range(1, len(counters) + 1))


def test_a_brain_that_spins_is_ended_and_sensors_go_on(make_agent: MakeAgent) -> None:
    agent = make_agent("spinner", config="[brain]\nheartbeat_s = 0.5").start()
    agent.ask("say", text="spin")
    frames = agent.committed("camera")
    until(lambda: agent.restarts("brain") == 1, "the brain is started again")
    assert agent.committed("camera") > frames
    wakes = agent.summary()["wakes"]["admitted"]
    until(lambda: agent.summary()["wakes"]["admitted"] > wakes + 10, "the new brain wakes")
    assert agent.stop() == 0


def test_the_wakes_ordinal_goes_on_across_brains(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    until(lambda: agent.summary()["wakes"]["admitted"] > 20, "the brain wakes")
    agent.kill("brain")
    until(lambda: agent.restarts("brain") == 1, "the restart is counted")
    wakes = agent.summary()["wakes"]["admitted"]
    until(lambda: agent.summary()["wakes"]["admitted"] > wakes + 20, "the new brain wakes")
    assert agent.stop() == 0
    check_log(agent)
