import pytest

from axon.checks import isolation as module
from axon.checks.isolation import isolation, judge
from capsule.sandbox.availability import why_unavailable
from capsule.sandbox.probe import Check
from capsule.sandbox.selftest import SelfTest
from hardware_profiles.profile import load
from runtime.config.agent import load_agent


def test_what_was_allowed_is_named():
    leak = Check(name="fork", denied=False, detail="a child ran")
    check = judge(SelfTest(ok=False, checks=[leak, Check(name="exec", denied=True, detail="EPERM")]))
    assert (check.state, check.essential) == ("not held", True)
    assert check.detail.endswith("fork: a child ran")


def test_a_machine_without_a_sandbox_is_told_what_is_missing(monkeypatch):
    monkeypatch.setattr(module, "why_unavailable", lambda: "user namespaces are off")
    (check,) = isolation(None)
    assert (check.state, check.detail) == ("not held", "user namespaces are off")
    assert "--no-sandbox" in check.fix


@pytest.mark.sandbox
def test_the_agents_own_files_are_among_what_is_tried(agent):
    if missing := why_unavailable():
        pytest.skip(missing)
    (check,) = isolation(load_agent(agent, load("generic-x86_64")))
    assert check.state == "held", check.detail
    assert int(check.detail.split()[0]) > 10
