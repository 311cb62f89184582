from pathlib import Path

import pytest

from hardware_profiles.profile import load
from runtime.abi.errors import AbiMismatch, CognetInvalid, CognetNotFound, ConfigInvalid
from runtime.config.agent import load_agent
from runtime.config.cognet import find_cognet, load_cognet

GOOD = """\
format = 1
abi = "1"
mode = "continuous"
wake_on = ["text", "field:host.cpu"]
max_ticks_per_wake = 8

[engines.main]
type = "generate"
in = ["text"]
out = ["text"]
context = 4096
parallel = 2
optional = true

[store]
checkpoint = "dict"
"notes-{session}" = "list[str]"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text("")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    (folder / "cognet.toml").write_text(text)
    return folder


def refused(folder: Path, text: str) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        load_cognet(write(folder, text))
    return caught.value


def test_a_whole_cognet_is_read(folder):
    found = load_cognet(write(folder, GOOD))
    assert found.name == folder.name
    assert (found.mode, found.abi, found.max_ticks_per_wake) == ("continuous", "1", 8)
    assert found.wake_on == ("text", "field:host.cpu")
    assert found.store == {"checkpoint": "dict", "notes-{session}": "list[str]"}
    assert found.engines["main"].input == ["text"]
    assert found.engines["main"].optional


def test_text_wakes_when_nothing_is_said(folder):
    found = load_cognet(write(folder, 'format = 1\nabi = "1"\nmode = "invocation"\n'))
    assert found.wake_on == ("text",)
    assert found.max_ticks_per_wake == 32


def test_another_abi_is_refused_naming_both_versions(folder):
    with pytest.raises(AbiMismatch, match=r'wants ABI "2", this release offers "1"') as caught:
        load_cognet(write(folder, 'format = 1\nabi = "2"\nmode = "dreaming"\n'))
    assert caught.value.facts["line"] == 2
    assert (caught.value.facts["wanted"], caught.value.facts["offered"]) == ("2", "1")


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "expected"),
    [
        ('abi = "1"', "abi = 1", 2, "abi", "text"),
        ('"continuous"', '"dreaming"', 3, "mode", '"continuous" or "invocation"'),
        ('"field:host.cpu"', '"smell"', 4, "wake_on[1]", "visual"),
        ('"field:host.cpu"', '"text:no such/channel"', 4, "wake_on[1]", "visual"),
        ("= 8", "= 0", 5, "max_ticks_per_wake", "1,000,000"),
        ("= 8", "= 8\nrate_hz = 30", 6, "rate_hz", "mode"),
        ("context = 4096", "context = 0", 11, "engines.main.context", "tokens"),
        ('type = "generate"', "", 7, "engines.main.type", "given"),
        ('"dict"', '"set[int]"', 16, "store.checkpoint", "list[...]"),
        ('"dict"', "3", 16, "store.checkpoint", "list[...]"),
        ("checkpoint =", '"../escape" =', 16, 'store."../escape"', "{session}"),
    ],
)
def test_what_is_wrong_is_named_with_line_key_and_expectation(folder, old, new, line, key, expected):
    error = refused(folder, GOOD.replace(old, new))
    assert error.facts["file"] == str(folder / "cognet.toml")
    assert (error.facts["line"], error.facts["key"]) == (line, key)
    assert expected in error.facts["expected"]


def test_a_rate_is_answered_with_where_it_stands(folder):
    error = refused(folder, GOOD.replace("= 8", "= 8\nrate = 30"))
    assert error.facts["line"] == 6
    assert "every(1 / 30, kernel.wake)" in error.hint


def test_a_folder_without_cognet_toml_is_no_cognet(tmp_path):
    with pytest.raises(CognetNotFound):
        load_cognet(tmp_path)


def test_a_cognet_needs_a_main(tmp_path):
    with pytest.raises(CognetInvalid, match=r"main\.py"):
        load_cognet(write(tmp_path, GOOD))


def agent_with(folder: Path, cognet: str):
    (folder / "axon.toml").write_text(f'format = 1\n[agent]\nname = "rover"\ncognet = "{cognet}"\n')
    return load_agent(folder, load("generic-x86_64"))


def test_a_shipped_cognet_is_found_by_name(tmp_path):
    shipped = tmp_path / "shipped"
    (shipped / "reflex").mkdir(parents=True)
    write(shipped / "reflex", GOOD)
    assert find_cognet(agent_with(tmp_path, "reflex"), shipped) == shipped / "reflex"


def test_the_agents_own_cognet_is_its_own_folder(tmp_path):
    (tmp_path / "cognet").mkdir()
    write(tmp_path / "cognet", GOOD)
    assert find_cognet(agent_with(tmp_path, "cognet"), tmp_path / "none") == tmp_path / "cognet"


def test_an_own_cognet_that_isnt_there_is_an_error_with_the_command_that_makes_one(tmp_path):
    with pytest.raises(CognetNotFound) as caught:
        find_cognet(agent_with(tmp_path, "cognet"), tmp_path / "none")
    assert f"axon new cognet {tmp_path / 'cognet'}" in caught.value.hint


def test_a_cognet_that_isnt_there_is_an_error_with_those_that_are(tmp_path):
    shipped = tmp_path / "shipped"
    (shipped / "zero").mkdir(parents=True)
    write(shipped / "zero", GOOD)
    with pytest.raises(CognetNotFound, match="zero"):
        find_cognet(agent_with(tmp_path, "reflex"), shipped)
