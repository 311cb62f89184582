"""What of the agent's folder the brain's sandbox shows: its knowledge, at its own paths, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.abi.errors import KnowledgeEscape
from runtime.kernel.brain_sandbox import COGNET_INSIDE, brain_plan, hidden_of, knowledge_binds, try_sandbox
from runtime.knowledge.places import prepare


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "robot"
    for name in ("knowledge/a.md", "modules/arm/knowledge/b.md", "modules/arm/secret.py", "modules/leg.py", "boot.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "cognet").mkdir()
    return folder


def test_every_folder_of_knowledge_is_bound_at_its_own_path(agent):
    shown = [agent / "knowledge", agent / "modules/arm/knowledge"]
    assert [(bind.source, bind.dest) for bind in knowledge_binds(agent)] == [(path, str(path)) for path in shown]
    dests = [bind.dest for bind in brain_plan(agent, agent / "cognet", (3, 4)).binds]
    assert dests[-3:] == [COGNET_INSIDE, *map(str, shown)]


def test_an_agent_behind_a_link_is_bound_at_its_real_path(agent, tmp_path):
    (tmp_path / "link").symlink_to(agent)
    assert knowledge_binds(tmp_path / "link") == knowledge_binds(agent)


def test_everything_else_of_the_agent_stays_hidden(agent):
    hidden = {str(path.relative_to(agent)) for path in hidden_of(agent)}
    assert hidden == {"axon.toml", "boot.md", "data", "modules/leg.py", "modules/arm/secret.py"}
    (agent / "modules/arm/knowledge/b.md").unlink()
    (agent / "modules/arm/knowledge").rmdir()
    assert "modules" in {path.name for path in hidden_of(agent)}


@pytest.mark.sandbox
def test_the_self_test_holds_with_knowledge_shown(agent):
    found = try_sandbox(agent, agent / "cognet")
    assert found.ok, found.leaks()
    tried = {check.name for check in found.checks}
    assert f"write to {agent}/knowledge" in tried
    assert f"write to {agent}/modules/arm/knowledge" in tried
    assert f"read {agent}/modules/arm/secret.py" in tried


def test_a_store_behind_a_link_is_refused_before_anything_starts(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "knowledge").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KnowledgeEscape):
        prepare(tmp_path)
    (tmp_path / "knowledge").unlink()
    (tmp_path / "knowledge").write_text("a file")
    with pytest.raises(KnowledgeEscape):
        prepare(tmp_path)


def test_a_store_that_isnt_there_is_made(tmp_path):
    prepare(tmp_path)
    prepare(tmp_path)
    assert (tmp_path / "knowledge").is_dir()
