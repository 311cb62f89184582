"""What a person can do to a running agent, by the control socket and over MQTT."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from axon.client import running
from capsule.frames import receive_frame
from runtime.abi.clock import wall_ms
from runtime.abi.entries import decode
from runtime.abi.errors import CallInvalid, SessionLocked, StimulusInvalid
from runtime.kernel.stop import StopLatch
from runtime.log.verify import verify
from runtime.mqtt.client import Connection, parse_address

from .conftest import LIMIT_S, Agent, until

MakeAgent = Callable[..., Agent]


def publish(agent: Agent, topic: str, payload: bytes, *, retain: bool = False) -> None:
    async def send() -> None:
        async with asyncio.timeout(LIMIT_S), Connection(parse_address(running(agent.folder).broker)) as connection:
            await connection.publish(f"axon/test/{topic}", payload, qos=1, retain=retain)

    asyncio.run(send())


def command(**parts: Any) -> bytes:
    return json.dumps({"issued_ms": wall_ms(), "ttl_ms": 60_000, **parts}).encode()


def entries(agent: Agent, type_: str) -> list[Any]:
    return [decode(row.body, row.seq).data for row in agent.rows() if row.type == type_]


def test_words_said_become_a_durable_stimulus(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    answer = agent.ask("say", text="hello", channel="voice", source="ann")
    found = next(row for row in agent.rows() if row.seq == answer["seq"])
    data = decode(found.body, found.seq).data
    assert data.source.channel == "voice"  # type: ignore[union-attr]
    assert agent.stop() == 0


def test_words_on_a_wrong_channel_are_refused(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    with pytest.raises(StimulusInvalid):
        agent.ask("say", text="x", channel="no/such channel")


@pytest.mark.parametrize("args", [{"txt": "x"}, {}, {"text": "x", "more": 1}])
def test_wrong_arguments_are_named(make_agent: MakeAgent, args: dict[str, Any]) -> None:
    agent = make_agent(sensors=False).start()
    with pytest.raises(CallInvalid, match="say"):
        agent.ask("say", **args)
    with pytest.raises(CallInvalid, match="there is no request 'dance'"):
        agent.ask("dance")


def test_a_stop_latches_is_recorded_and_survives_a_kill(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    report = agent.ask("stop", by="ann", reason="smoke")
    assert report["stopped"]
    assert report["recorded"]
    agent.kill("kernel")
    agent.start()
    assert agent.summary()["stopped"]
    agent.ask("clear", by="ann")
    assert not agent.summary()["stopped"]
    assert agent.stop() == 0
    kinds = [data.type for data in entries(agent, "axon:system:message")]
    assert kinds.count("stop") == 2  # the stop itself, and the start that found it
    assert kinds.count("stop-cleared") == 1


def test_a_stop_holds_in_a_new_session(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    agent.ask("stop", by="ann")
    agent.stop()
    agent.start(session="new")
    assert agent.summary()["stopped"]


def test_a_stop_over_mqtt_acts_and_clearing_over_mqtt_needs_a_whole_command(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    publish(agent, "stop", b"{}")
    until(lambda: agent.summary()["stopped"], "the stop acts")
    publish(agent, "stop", b'{"clear": true}')
    until(lambda: agent.summary()["refused"].get("COMMAND_REFUSED"), "the sloppy clearing is refused")
    assert agent.summary()["stopped"]
    publish(agent, "stop", command(id="c1", clear=True))
    until(lambda: not agent.summary()["stopped"], "the stop is cleared")
    assert agent.stop() == 0


def test_a_retained_command_moves_nothing_at_a_start(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    publish(agent, "interrupt", command(id="i1"), retain=True)
    until(lambda: entries(agent, "axon:interrupt"), "it acts once, live")
    agent.kill("broker")  # connecting again, the kernel would be told what is retained
    until(lambda: agent.restarts("broker") == 1, "the broker is back")
    assert len(entries(agent, "axon:interrupt")) == 1
    assert agent.stop() == 0


def test_an_interrupt_cancels_wakes_and_interrupted_isnt_failed(make_agent: MakeAgent) -> None:
    agent = make_agent("sleeper", sensors=False).start()
    until(lambda: agent.summary()["wakes"]["max_overlap"] > 3, "wakes overlap")
    assert agent.ask("interrupt", by="ann", reason="wrong way")["seq"]
    until(lambda: agent.summary()["wakes"]["interrupted"] > 3, "open wakes are interrupted")
    assert agent.summary()["wakes"]["failed"] == 0
    admitted = agent.summary()["wakes"]["admitted"]
    until(lambda: agent.summary()["wakes"]["admitted"] > admitted + 5, "later wakes go on")
    assert agent.stop() == 0


def test_a_second_kernel_on_the_same_agent_is_refused(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    first = agent.process
    second = agent.launch()
    assert second.wait(LIMIT_S) == 1
    assert SessionLocked.code in agent.words()
    agent.forget()
    agent.process = first
    assert agent.stop() == 0


@pytest.mark.parametrize("noise", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\x00\x00\x00\x02\xc1\xc1"])
@pytest.mark.parametrize("place", ["control", "bus"])
def test_garbage_on_a_socket_is_cut_off_and_hurts_nobody(make_agent: MakeAgent, noise: bytes, place: str) -> None:
    agent = make_agent(sensors=False).start()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LIMIT_S)
        sock.connect(getattr(running(agent.folder), place))
        sock.sendall(noise)
        sock.shutdown(socket.SHUT_WR)
        while receive_frame(sock) is not None:
            continue  # its hello, then its end
    assert agent.summary()["storage"] == "ok"


def test_the_status_is_retained_and_goes_offline_in_order_and_by_the_will(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    states: list[str] = []

    async def watch() -> None:
        async with asyncio.timeout(LIMIT_S), Connection(parse_address(running(agent.folder).broker)) as connection:
            await connection.subscribe("axon/test/status")
            async for message in connection.messages():
                state = json.loads(message.payload)["state"]
                if state == "connecting":
                    continue
                states.append(state)
                if states[-1] == "offline":
                    return
                assert agent.process
                agent.process.terminate()

    asyncio.run(watch())
    assert states == ["online", "offline"]


def test_a_long_story_is_shortened_and_the_log_stays_readable(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    assert agent.ask("interrupt", by="ann", reason="x" * 300)["seq"]
    report = agent.ask("stop", by="b" * 1000, reason="y" * 70_000)
    assert report["stopped"]
    assert report["recorded"]
    with pytest.raises(CallInvalid):
        agent.ask("interrupt", by=5)
    with pytest.raises(CallInvalid):
        agent.ask("clear", by=["x"])
    assert agent.stop() == 0
    assert verify(agent.session).ok
    assert entries(agent, "axon:interrupt")[0].reason == "x" * 256


def test_a_stop_by_file_while_the_kernel_was_frozen_holds(make_agent: MakeAgent) -> None:
    agent = make_agent(sensors=False).start()
    latch = StopLatch.load(agent.folder / "data")
    latch.latch(by="ann", reason="it hangs")
    latch.save()
    until(lambda: agent.summary()["stopped"], "the running kernel follows the file")
    assert agent.stop() == 0
    assert "stop" in [data.type for data in entries(agent, "axon:system:message")]
