"""The self-test finds nothing in the real sandbox, and finds what a sandbox with a hole lets through."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

import capsule
import runtime
from capsule.errors import SandboxLeaks, SandboxUnavailable
from capsule.sandbox import bubblewrap, probe, selftest
from capsule.sandbox.launcher import launch
from capsule.sandbox.plan import Bind, Plan
from capsule.sandbox.selftest import SelfTest, self_test

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("sandbox")]
PACKAGES = [Path(capsule.__path__[0]), Path(runtime.__path__[0])]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "axon.toml").write_text("format = 1\n")
    return tmp_path


def test_every_forbidden_act_is_denied(agent: Path) -> None:
    tried = self_test(packages=PACKAGES, hidden=[agent / "axon.toml", agent / "data", PACKAGES[1].parent])
    tried.must_hold()
    names = {check.name for check in tried.checks}
    assert {f"read {agent}/axon.toml", f"read {agent}/data", "read /etc/shadow", "write to /app/runtime"} <= names
    assert {"fork", "exec", "call ptrace", "call mount", "call bpf", "see other processes", "open /dev/mem"} <= names


def test_a_file_that_is_shown_is_a_leak(agent: Path) -> None:
    shown = [Bind(agent / "axon.toml", str(agent / "axon.toml"))]
    tried = self_test(packages=PACKAGES, hidden=[agent / "axon.toml"], extra=shown)
    assert [leak.name for leak in tried.leaks()] == [f"read {agent}/axon.toml"]
    with pytest.raises(SandboxLeaks, match=r"axon\.toml"):
        tried.must_hold()


def test_a_shared_network_is_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "NAMESPACES", (*bubblewrap.NAMESPACES, "--share-net"))
    leaks = {leak.name for leak in self_test(packages=PACKAGES, hidden=[]).leaks()}
    assert {"connect to the host's loopback", "arrive at the host's AF_INET listener"} <= leaks


def test_a_guest_that_stays_unlocked_is_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "launch", lambda plan: launch(without_lock(plan)))
    leaks = {leak.name for leak in self_test(packages=PACKAGES, hidden=[]).leaks()}
    assert leaks == {"end without a report"}  # its exec is not denied, so it becomes another program


def without_lock(plan: Plan) -> Plan:
    start = "import capsule.sandbox.lock as l; l.lock_down = lambda: False; import runpy; "
    at = plan.argv.index("-m")
    return msgspec.structs.replace(
        plan,
        argv=[
            *plan.argv[:at],
            "-c",
            start + f"runpy.run_module({plan.argv[at + 1]!r}, run_name='__main__')",
            *plan.argv[at + 2 :],
        ],
    )


def test_a_guest_that_cannot_start_is_a_leak() -> None:
    broken = [Bind(Path("/dev/null"), "/app/capsule/sandbox/probe.py")]
    tried = self_test(packages=PACKAGES, hidden=[], extra=broken)
    assert not tried.ok


def test_no_descriptor_is_left_behind(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    self_test(packages=PACKAGES, hidden=[])
    with pytest.raises(SandboxUnavailable):
        self_test(packages=PACKAGES, hidden=[], extra=[Bind(tmp_path / "missing", "/missing")])
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_act_that_succeeds_is_no_denial() -> None:
    assert probe.attempt("look", lambda: "something").denied is False
    assert probe.attempt("look", lambda: probe.none_of(set())).denied is True
    assert SelfTest(ok=True, checks=[]).leaks() == []
