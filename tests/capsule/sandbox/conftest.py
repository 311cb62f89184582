"""Guests written in a test, run in a real sandbox; without one the tests are skipped by the reason's name."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import capsule
from capsule.sandbox.availability import why_unavailable
from capsule.sandbox.launcher import Launched, launch
from capsule.sandbox.limits import Limits
from capsule.sandbox.plan import Bind, Plan, python_plan

PATIENCE_S = 30.0


class Ended(msgspec.Struct, frozen=True):
    """What became of a guest."""

    code: int
    said: str


def wait_for(launched: Launched) -> Ended:
    try:
        said = launched.popen.communicate(timeout=PATIENCE_S)[0]
    finally:
        launched.kill()
        launched.popen.wait()
        launched.close()
    return Ended(launched.popen.returncode, said.decode())


@pytest.fixture(scope="session")
def sandbox() -> None:
    reason = why_unavailable()
    if reason is not None:
        pytest.skip(f"no sandbox here: {reason}")


@pytest.fixture
def plan_of(tmp_path: Path) -> Callable[..., Plan]:
    """Plan a guest whose program is the text given."""

    def make(
        program: str,
        *args: str,
        fds: tuple[int, ...] = (),
        limits: Limits | None = None,
        extra: list[Bind] | None = None,
    ) -> Plan:
        folder = tmp_path / "guest"
        folder.mkdir(exist_ok=True)
        (folder / "__main__.py").write_text(program)
        packages = [Path(capsule.__path__[0]), folder]
        return python_plan("guest", list(args), packages=packages, extra=extra, fds=fds, limits=limits)

    return make


@pytest.fixture
def run_guest(sandbox: None, plan_of: Callable[..., Plan]) -> Callable[..., Ended]:
    """Run a guest in the sandbox to its end."""
    return lambda program, *args, **shape: wait_for(launch(plan_of(program, *args, **shape)))


@pytest.fixture
def run_open(plan_of: Callable[..., Plan]) -> Callable[..., Ended]:
    """Run a guest without a sandbox to its end."""
    return lambda program, *args, **shape: wait_for(launch(plan_of(program, *args, **shape), sandboxed=False))


@pytest.fixture
def start(sandbox: None, plan_of: Callable[..., Plan]) -> Callable[..., Launched]:
    """Start a guest and leave it running."""
    return lambda program, *args, **shape: launch(plan_of(program, *args, **shape), output=subprocess.PIPE)
