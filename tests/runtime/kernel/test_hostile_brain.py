"""A hostile or broken brain harms itself alone: it is restarted where it must be, and the log can be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runtime.abi.entries import decode
from runtime.log.reader import LogReader
from runtime.log.verify import verify

from .conftest import Agent, until

MakeAgent = Callable[..., Agent]
FORGERIES = ["garbage", "deep", "ordinal", "missed", "forged event"]
RESTARTED = [*FORGERIES, "close", "exit", "never read"]
SURVIVED = ["settle", "settle far", "blank", "load failed", "memory", "print", "threads", "flood", "store"]


def goes_on(agent: Agent) -> None:
    """Wakes, the log and the emergency stop work, and every entry can be read."""
    wakes = agent.summary()["wakes"]["admitted"]
    until(lambda: agent.summary()["wakes"]["admitted"] > wakes + 5, "the brain wakes")
    assert agent.ask("stop", by="test")["recorded"]
    kernel = until(lambda: agent.summary()["processes"].get("kernel"), "the kernel is measured")
    assert kernel["rss_mb"] < 150
    assert agent.stop() == 0
    assert verify(agent.session).ok
    for row in agent.rows():
        decode(row.body, row.seq)


def refusals(agent: Agent) -> list[str]:
    """What was recorded of a peer that broke its protocol."""
    return [event.data["code"] for event in LogReader(agent.session).telemetry(types=["kernel:link:refused"])]


@pytest.mark.parametrize("harm", RESTARTED)
def test_it_is_restarted(make_agent: MakeAgent, harm: str) -> None:
    agent = make_agent("hostile", sensors=False, config="[brain]\nheartbeat_s = 0.5").start(sandbox=True)
    agent.ask("say", text=harm)
    until(lambda: agent.restarts("brain") >= 1, "the brain is restarted")
    goes_on(agent)
    assert bool(refusals(agent)) == (harm in FORGERIES)


@pytest.mark.parametrize("harm", SURVIVED)
def test_it_does_no_harm(make_agent: MakeAgent, harm: str) -> None:
    agent = make_agent("hostile", sensors=False).start(sandbox=True)
    agent.ask("say", text=harm)
    goes_on(agent)


def test_a_flood_of_store_calls_is_refused_and_told(make_agent: MakeAgent) -> None:
    agent = make_agent("hostile", sensors=False).start(sandbox=True)
    agent.ask("say", text="store")
    told = until(
        lambda: [decode(r.body, r.seq).data for r in agent.rows() if r.type == "cognet:output:text"], "it is told"
    )
    assert int(told[0].content) > 100  # type: ignore[union-attr]
    assert agent.stop() == 0


def test_garbage_on_the_page_socket_is_cut_off_and_recorded(make_agent: MakeAgent) -> None:
    agent = make_agent("hostile", sensors=False).start(sandbox=True)
    agent.ask("say", text="garbage for pages")
    goes_on(agent)
    assert refusals(agent) == ["FRAME_INVALID"]
