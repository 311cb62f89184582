"""Zero in a real agent: its engine is killed, its kernel is killed, and it goes on from its log."""

from __future__ import annotations

import pytest

from runtime.abi.entries import Entry, decode
from runtime.abi.errors import AgentNotRunning

from .conftest import until

ENGINE = '[engines.main]\nprovider = "scripted"\n'
SLOW = """
format = 1
[[rules]]
when = 'slowly'
reply = "one two three"
pace = {piece_ms = 600000}
[[rules]]
reply = '''
at once
<done/>
'''
"""


@pytest.fixture
def zero(make_agent):
    def make(script: str = ""):
        agent = make_agent("zero", config=ENGINE + ('model = "s.toml"\n' if script else ""), sensors=False)
        (agent.folder / "s.toml").write_text(script)
        return agent

    return make


def start(agent, **options) -> None:
    """Zero wakes only when something is said: until its brain is up."""
    agent.launch(drivers=False, sandbox=False, **options)
    until(lambda: up(agent), "the brain is up")


def up(agent) -> bool:
    try:
        return agent.summary()["brain"] == "up"
    except AgentNotRunning:
        return False


def entries(agent) -> list[Entry]:
    return [decode(row.body, row.seq) for row in agent.rows()]


def words(agent) -> str:
    return "".join(entry.data.content for entry in entries(agent) if entry.type == "cognet:output:text")


def settled(agent, seq: int) -> bool:
    return any(entry.type == "axon:agent:settled" and entry.data.upto_seq >= seq for entry in entries(agent))


def ask(agent, text: str) -> None:
    seq = agent.ask("say", text=text)["seq"]
    until(lambda: settled(agent, seq), f"it has answered {text!r}")


def test_an_engine_that_is_killed_in_a_stream_fails_the_wake_and_the_next_one_works(zero):
    agent = zero(SLOW)
    start(agent)
    seq = agent.ask("say", text="speak slowly")["seq"]
    until(lambda: "one" in words(agent), "it speaks")
    agent.kill("engine.main")
    until(lambda: settled(agent, seq), "the wake has ended")
    ask(agent, "hello")
    assert words(agent).endswith("at once\n")
    until(lambda: agent.restarts("engine.main") == 1, "the restart is counted")
    agent.stop()
    assert "ENGINE_FAILED" in agent.words()


def test_an_interrupt_frees_the_engine(zero):
    agent = zero(SLOW)
    start(agent)
    seq = agent.ask("say", text="speak slowly")["seq"]
    until(lambda: "one" in words(agent), "it speaks")
    agent.ask("interrupt", by="ada")
    until(lambda: settled(agent, seq), "the wake has ended")
    ask(agent, "hello")
    assert words(agent).endswith("at once\n")
    assert agent.restarts("engine.main") == 0


def test_a_kernel_that_is_killed_in_a_stream_leaves_nothing_and_zero_answers_after_all(zero):
    agent = zero(SLOW)
    start(agent)
    seq = agent.ask("say", text="speak slowly")["seq"]
    until(lambda: "one" in words(agent), "it speaks")
    (agent.folder / "s.toml").write_text(SLOW.replace("600000", "0"))
    agent.kill("kernel")
    start(agent)
    until(lambda: settled(agent, seq), "it has answered")
    assert words(agent).endswith("at once\n")


def test_killed_between_action_and_result_the_next_start_closes_it_and_zero_sees_that(zero):
    agent = zero()
    start(agent)
    agent.ask("say", text="wait 600 seconds in python")
    until(lambda: "cognet:action:python" in [row.type for row in agent.rows()], "the block is in the log")
    assert "cognet:action:result" not in [row.type for row in agent.rows()]
    agent.kill("kernel")
    start(agent)
    until(lambda: "didn't work (interrupt" in words(agent), "zero tells what became of it")
    (result,) = [entry for entry in entries(agent) if entry.type == "cognet:action:result"]
    assert result.data.error.kind == "interrupt"
    assert [row.type for row in agent.rows()].count("cognet:action:python") == 1


def test_a_required_role_that_nothing_fills_stops_the_start_before_anything_runs(make_agent):
    agent = make_agent("zero", sensors=False)
    process = agent.launch(drivers=False, sandbox=False)
    assert process.wait(40) == 1
    assert "ENGINE_ROLE_UNBOUND" in agent.words()
    assert not (agent.folder / "data").exists()
