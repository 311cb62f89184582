import json

import pytest

from axon.person import person
from runtime.abi.errors import LogBacklogFull


@pytest.fixture
def heard(kernel):
    heard = []

    async def say(text: str, channel: str, source: str) -> dict[str, int]:
        heard.append((text, channel, source))
        return {"seq": 42}

    kernel(say=say)
    return heard


def test_it_answers_with_the_seq_of_what_is_durable(axon, agent, heard):
    assert axon("say", agent, "come here").out == "seq 42, durable\n"
    assert heard == [("come here", "person", person())]


def test_the_channel_may_be_chosen(axon, agent, heard):
    axon("say", agent, "come here", "--channel", "radio")
    assert heard[0][1] == "radio"


def test_programs_get_json(axon, agent, heard):
    assert json.loads(axon("say", agent, "x", "--json").out) == {"seq": 42}


def test_without_a_kernel_it_says_how_to_start_one(axon, agent):
    ended = axon("say", agent, "hello?")
    assert ended.status == 1
    assert ended.err.startswith("AGENT_NOT_RUNNING: ")
    assert "axon run" in ended.err


def test_the_kernels_refusal_is_shown_with_what_to_do(axon, agent, kernel):
    async def say(text: str, channel: str, source: str) -> None:
        raise LogBacklogFull("too much waits for the disk")

    kernel(say=say)
    ended = axon("say", agent, "hello")
    assert (ended.status, ended.err.splitlines()[0]) == (1, "LOG_BACKLOG_FULL: too much waits for the disk")
    assert "slower than the sensors" in ended.err
