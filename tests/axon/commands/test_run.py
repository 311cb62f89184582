import os
import sys
from pathlib import Path

import msgspec
import pytest

from axon.options import RunOptions


class Became(Exception):
    """This process would have become another one."""


@pytest.fixture
def became(monkeypatch):
    """What ``axon run`` turned into, instead of turning into it."""
    seen = []

    def execv(path, argv):
        seen.append((path, argv))
        raise Became

    monkeypatch.setattr(os, "execv", execv)
    return seen


def options(axon, became, *words) -> RunOptions:
    with pytest.raises(Became):
        axon("run", *words)
    path, argv = became[-1]
    assert path == sys.executable
    assert argv[1:-1] == ["-P", "-m", "axon.run"]
    return msgspec.json.decode(argv[-1], type=RunOptions)


def test_a_plain_run_asks_for_the_last_session_in_the_sandbox(axon, became, agent):
    assert options(axon, became, agent) == RunOptions(folder=str(agent))


def test_without_a_folder_it_is_this_one(axon, became, agent, monkeypatch):
    monkeypatch.chdir(agent)
    assert options(axon, became).folder == str(agent)


def test_everything_that_can_be_asked_for_arrives(axon, became, agent, monkeypatch):
    monkeypatch.chdir(agent)
    words = "--for 1m30s --summary out.json --session new --inline --no-sandbox --volatile-data --no-status"
    found = options(axon, became, agent, *words.split(), "--profile", "raspberry-pi-5")
    assert found == RunOptions(
        folder=str(agent),
        for_s=90,
        summary=str(agent / "out.json"),
        session="new",
        inline=True,
        sandbox=False,
        volatile_data=True,
        profile="raspberry-pi-5",
        status=False,
    )


@pytest.mark.parametrize(
    "words", [["--for", "soon"], ["--summary", "/no/such/folder/out.json"], ["--nonsense"], ["one", "two"]]
)
def test_wrong_usage_ends_with_2(axon, became, agent, words):
    assert axon("run", agent, *words).status == 2
    assert not became


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "AGENT_NOT_FOUND"),
        ("format = 1\n[agent]\nnam = 3\n", "CONFIG_INVALID"),
        ('format = 1\n[agent]\nname = "r"\ncognet = "nobody"\n', "COGNET_NOT_FOUND"),
    ],
)
def test_what_the_kernel_would_refuse_is_refused_before_it_starts(axon, became, tmp_path, text, code):
    if text:
        (tmp_path / "axon.toml").write_text(text)
    ended = axon("run", tmp_path)
    assert (ended.status, ended.err.split(":")[0]) == (1, code)
    assert not became


def test_a_cognet_of_another_abi_is_refused_before_anything_starts(axon, became, agent):
    (agent / "axon.toml").write_text('format = 1\n[agent]\nname = "r"\ncognet = "cognet"\n')
    (agent / "cognet").mkdir()
    (agent / "cognet/cognet.toml").write_text('format = 1\nabi = "99"\nmode = "continuous"\n')
    ended = axon("run", agent)
    assert ended.status == 1
    assert ended.err.startswith("ABI_MISMATCH: ")
    assert '"99"' in ended.err


def test_an_unknown_profile_is_refused_with_those_there_are(axon, became, agent):
    ended = axon("run", agent, "--profile", "toaster")
    assert ended.status == 1
    assert "raspberry-pi-5" in ended.err


def test_the_rover_is_an_agent_that_runs(axon, became):
    rover = Path(__file__).parents[3] / "examples/rover"
    assert options(axon, became, rover, "--for", "20s").for_s == 20
