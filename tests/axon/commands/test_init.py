import subprocess

import pytest

from hardware_profiles.profile import load, names
from runtime.config.agent import load_agent


@pytest.mark.parametrize("profile", names())
def test_a_new_agent_can_be_loaded_on_every_board(axon, tmp_path, profile):
    ended = axon("init", tmp_path / "robot")
    assert ended.status == 0, ended.err
    agent = load_agent(tmp_path / "robot", load(profile))
    assert agent.agent.name == "robot"
    assert [sensor.driver for sensor in agent.sensors] == ["camera", "microphone", "host"]


def test_it_makes_every_folder_and_file_that_an_agent_has(axon, tmp_path):
    axon("init", tmp_path / "robot")
    made = {path.name for path in (tmp_path / "robot").iterdir()}
    assert made == {"axon.toml", "boot.md", ".gitignore", "knowledge", "modules"}


def test_what_the_agent_lives_through_is_not_published(axon, tmp_path):
    folder = tmp_path / "robot"
    axon("init", folder)
    (folder / "data").mkdir()
    (folder / "data/x").write_text("secret")
    subprocess.run(["git", "init", "-q", folder], check=True)
    shown = subprocess.run(["git", "-C", folder, "status", "--short", "-uall"], check=True, capture_output=True)
    assert b"axon.toml" in shown.stdout
    assert b"data" not in shown.stdout


def test_an_agent_that_is_there_is_not_overwritten(axon, agent):
    before = (agent / "axon.toml").read_text()
    ended = axon("init", agent)
    assert ended.status == 1
    assert ended.err.startswith("AGENT_EXISTS: ")
    assert (agent / "axon.toml").read_text() == before


def test_a_boot_text_that_is_there_stays(axon, tmp_path):
    (tmp_path / "boot.md").write_text("mine")
    assert axon("init", tmp_path).status == 0
    assert (tmp_path / "boot.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("folder", "name"), [("Müll Roboter!", "M-ll-Roboter"), ("...", "agent"), ("x" * 100, "x" * 64)]
)
def test_the_folders_name_becomes_one_that_mqtt_can_carry(axon, tmp_path, folder, name):
    axon("init", tmp_path / folder)
    assert load_agent(tmp_path / folder, load("generic-x86_64")).agent.name == name


def test_name_and_cognet_may_be_given(axon, tmp_path):
    axon("init", tmp_path / "robot", "--name", "r2", "--cognet", "cognet")
    agent = load_agent(tmp_path / "robot", load("generic-x86_64")).agent
    assert (agent.name, agent.cognet) == ("r2", "cognet")


@pytest.mark.parametrize("name", ["a/b", "a b", "a\n", '"', ".x", "x" * 65])
def test_a_name_that_mqtt_cannot_carry_is_wrong_usage(axon, tmp_path, name):
    assert axon("init", tmp_path / "robot", "--name", name).status == 2
    assert not (tmp_path / "robot").exists()


def test_a_cognet_that_is_not_shipped_is_wrong_usage(axon, tmp_path):
    ended = axon("init", tmp_path / "robot", "--cognet", "nobody")
    assert ended.status == 2
    assert "reflex" in ended.err
    assert not (tmp_path / "robot").exists()


def test_a_role_that_the_cognet_needs_is_filled(axon, tmp_path):
    axon("init", tmp_path / "robot", "--cognet", "zero")
    assert load_agent(tmp_path / "robot", load("generic-x86_64")).engines["main"].provider == "scripted"
    axon("init", tmp_path / "other", "--cognet", "pid")
    assert not load_agent(tmp_path / "other", load("generic-x86_64")).engines
