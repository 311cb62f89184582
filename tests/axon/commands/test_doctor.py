import json

import msgspec
import pytest

from axon.checks.check import held, not_held, warning
from axon.diagnosis import Diagnosis, examine
from hardware_profiles.profile import load
from runtime.config.origin import Origin

pytestmark = pytest.mark.sandbox


@pytest.fixture
def reflexive(agent):
    """An agent whose own cognet declares what it should."""
    (agent / "axon.toml").write_text('format = 1\n[agent]\nname = "robot"\ncognet = "cognet"\n')
    (agent / "cognet").mkdir()
    (agent / "cognet/main.py").touch()
    (agent / "cognet/cognet.toml").write_text('format = 1\nabi = "1"\nmode = "continuous"\n')
    return agent


def report(axon, *words) -> Diagnosis:
    return msgspec.json.decode(axon("doctor", *words, "--json").out, type=Diagnosis)


def names(found: Diagnosis) -> dict[str, str]:
    return {check.name: check.state for check in found.checks}


def test_every_promise_has_its_line(axon, reflexive):
    found = report(axon, reflexive)
    promised = "python profile sqlite sandbox agent broker cognet kernel"
    assert set(promised.split()) <= set(names(found))
    assert {"file system", "log settings", "commit", "memory limits", "emergency stop"} <= set(names(found))
    assert found.config["agent.name"] == Origin(value="robot", source="axon.toml:3")
    assert (found.running, found.refused) == (False, None)


def test_the_table_shows_state_fix_and_origin(axon, reflexive):
    (reflexive / "data").mkdir()
    (reflexive / "data/stop.json").write_text("{")
    out = axon("doctor", reflexive).out
    assert "emergency stop" in out
    assert f"axon stop {reflexive} --clear" in out
    assert "axon.toml:3" in out
    assert "profile generic" in out


def test_a_bad_configuration_is_not_held_and_fails(axon, agent):
    (agent / "axon.toml").write_text("format = 1\n[agent]\nname = 3\n")
    ended = axon("doctor", agent)
    assert ended.status == 1
    assert "axon.toml:3: agent.name" in ended.out


def test_a_cognet_of_another_abi_is_not_held_and_fails(axon, reflexive):
    (reflexive / "cognet/cognet.toml").write_text('format = 1\nabi = "7"\nmode = "continuous"\n')
    ended = axon("doctor", reflexive)
    assert ended.status == 1
    assert 'wants ABI "7"' in ended.out


def test_a_folder_that_was_named_must_hold_an_agent(axon, tmp_path):
    assert axon("doctor", tmp_path).status == 1


def test_without_an_agent_here_the_machine_alone_is_checked(axon, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = report(axon)
    assert names(found)["agent"] == "held"
    assert "cognet" not in names(found)
    assert found.config == {}


def test_a_running_kernel_tells_what_it_refused(axon, reflexive, kernel, summary):
    async def figures():
        return msgspec.to_builtins(summary(refused={"TOPIC_INVALID": 3}))

    kernel(summary=figures)
    found = report(axon, reflexive)
    assert found.running
    assert found.refused == {"TOPIC_INVALID": 3}
    assert names(found)["input"] == "warning"


def test_failed_storage_of_a_running_kernel_is_essential(axon, reflexive, kernel, summary):
    async def figures():
        return msgspec.to_builtins(summary(storage="failed"))

    kernel(summary=figures)
    assert axon("doctor", reflexive).status == 1


def test_only_what_is_essential_decides(monkeypatch, tmp_path):
    def outcome(*checks) -> bool:
        monkeypatch.setattr("axon.diagnosis.machine", lambda _profile: checks)
        monkeypatch.setattr("axon.diagnosis.isolation", lambda _agent: [])
        return examine(tmp_path, load("generic-x86_64"), wanted=False).ok

    assert outcome(held("a", "b"), warning("c", "d", fix="e"), not_held("f", "g", fix="h", essential=False))
    assert not outcome(not_held("f", "g", fix="h"))


def test_json_is_one_object_for_programs(axon, reflexive):
    found = json.loads(axon("doctor", reflexive, "--json").out)
    assert {"ok", "profile", "running", "checks", "config", "refused"} == set(found)
    assert {"name", "state", "detail", "fix", "essential"} == set(found["checks"][0])
