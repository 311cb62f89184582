"""What the brain's sandbox shows it, and the proof at each start that it shows nothing else."""

from __future__ import annotations

from pathlib import Path

from capsule.errors import SandboxUnavailable
from capsule.sandbox.availability import why_unavailable
from capsule.sandbox.plan import Bind, Plan, python_plan
from capsule.sandbox.selftest import SelfTest, self_test

INSTALLED = Path(__file__).resolve().parents[2]
PACKAGES = [INSTALLED / "runtime", INSTALLED / "capsule"]
COGNET_INSIDE = "/app/cognet"
OWNERS = ("axon.toml", "boot.md", "data", "modules")
"""What of the agent's folder a brain must never see."""


def brain_plan(cognet: Path, fds: tuple[int, int]) -> Plan:
    """The brain's process: its link and its page socket, the packages it builds on, its cognet, nothing more."""
    return python_plan("runtime.brain", [str(fd) for fd in fds], packages=PACKAGES, extra=_extra(cognet), fds=fds)


def try_sandbox(agent: Path | None, cognet: Path | None) -> SelfTest:
    """Try forbidden acts in a sandbox of the brain's shape; blocking, main thread."""
    hidden = [] if agent is None else [agent / name for name in OWNERS]
    return self_test(packages=PACKAGES, hidden=hidden, extra=[] if cognet is None else _extra(cognet))


def check_sandbox(agent: Path, cognet: Path) -> SelfTest:
    """``try_sandbox`` as the kernel's condition for a start.

    Raises ``SandboxLeaks`` when an act succeeded, ``SandboxUnavailable`` with what this machine lacks.
    """
    try:
        found = try_sandbox(agent, cognet)
    except SandboxUnavailable as error:
        raise SandboxUnavailable(why_unavailable() or error.message) from error
    if not found.ok and (reason := why_unavailable()):
        raise SandboxUnavailable(reason)
    found.must_hold()
    return found


def _extra(cognet: Path) -> list[Bind]:
    return [Bind(cognet, COGNET_INSIDE)]
