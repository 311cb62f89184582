"""The sandbox: whether it can be built here, and whether it denies what must be denied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from axon.checks.check import Check, held, not_held
from axon.shipped import SHIPPED_COGNETS
from capsule.errors import AxonError
from capsule.sandbox.availability import why_unavailable
from capsule.sandbox.selftest import SelfTest
from runtime.config.agent import AgentConfig
from runtime.config.cognet import find_cognet
from runtime.kernel.brain_sandbox import try_sandbox

_NAME = "sandbox"
_FIX = "Repair it, or start with --no-sandbox: then the brain can do all that you can."


def isolation(agent: AgentConfig | None) -> Iterator[Check]:
    """Build one of the brain's shape and try to break out of it; main thread, about half a second."""
    missing = why_unavailable()
    if missing is not None:
        yield not_held(_NAME, missing, fix=_FIX)
        return
    try:
        yield judge(_tried(agent))
    except (AxonError, OSError) as error:
        yield not_held(_NAME, error.message if isinstance(error, AxonError) else str(error), fix=_FIX)


def judge(test: SelfTest) -> Check:
    """Every forbidden act must have been denied."""
    if not test.ok:
        allowed = "; ".join(f"{leak.name}: {leak.detail}" for leak in test.leaks())
        return not_held(_NAME, f"it allowed what it must deny: {allowed}", fix=_FIX)
    return held(_NAME, f"{len(test.checks)} forbidden acts were tried, all denied", essential=True)


def _tried(agent: AgentConfig | None) -> SelfTest:
    """A sandbox as the brain's, with its cognet where there is one."""
    if agent is None:
        return try_sandbox(None, None)
    return try_sandbox(agent.folder, _cognet(agent))


def _cognet(agent: AgentConfig) -> Path | None:
    try:
        return find_cognet(agent, SHIPPED_COGNETS)
    except AxonError:
        return None  # the line about the cognet says so
