"""Doctor's look at an agent's knowledge and identity."""

import os
from pathlib import Path

import pytest

from axon.checks.folder import identity, knowledge
from hardware_profiles.profile import load
from runtime.config.agent import load_agent


@pytest.fixture
def store(agent) -> Path:
    (agent / "knowledge").mkdir()
    return agent / "knowledge"


def test_entries_are_counted(agent, store):
    (store / "a.md").write_text("x")
    (store / ".gitkeep").write_text("")
    found = knowledge(agent)
    assert (found.state, found.detail) == ("held", "1 entries")


def test_everything_odd_is_named(agent, store):
    (store / "link").symlink_to("/etc/passwd")
    os.mkfifo(store / "pipe")
    (store / "a").write_text("x")
    (store / "A").write_text("x")
    (store / os.fsdecode(b"\xff")).write_text("x")
    (store / "big").write_bytes(b"x" * 1_000_001)
    (agent / "modules/arm/knowledge").mkdir(parents=True)
    (store / "arm").mkdir()
    found = knowledge(agent)
    assert found.state == "warning"
    assert found.detail.isprintable()
    for word in ("link", "ordinary file", "looks like A", "can't be a name", "larger than", "out of sight"):
        assert word in found.detail


def test_a_long_list_is_cut(agent, store):
    for number in range(20):
        os.mkfifo(store / f"pipe-{number}")
    assert "and 12 more" in knowledge(agent).detail


def test_a_store_behind_a_link_keeps_the_agent_from_starting(agent, tmp_path):
    (agent / "knowledge").symlink_to(tmp_path)
    found = knowledge(agent)
    assert (found.state, found.essential) == ("not held", True)


def test_the_identity_is_rendered(agent):
    config = load_agent(agent, load("generic-x86_64"))
    assert identity(config).state == "held"
    (agent / "boot.md").write_text("{{ agent }} on {{ profile }} in {{ session }}")
    assert identity(config).detail == "boot.md renders to 34 characters"
    (agent / "boot.md").write_text("\n{{ nobody }}")
    found = identity(config)
    assert (found.state, found.essential) == ("not held", False)
    assert "boot.md:2: 'nobody' is undefined" in found.detail
