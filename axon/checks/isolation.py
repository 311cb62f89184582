"""The sandbox: whether it can be built here, and whether it denies what must be denied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from axon.checks.check import Check, held, not_held
from capsule.errors import AxonError
from capsule.sandbox.selftest import SelfTest, self_test, why_unavailable

_NAME = "sandbox"
_FIX = "Repair it, or start with --no-sandbox: then the brain can do all that you can."


def isolation(agent: Path | None) -> Iterator[Check]:
    """Build one and try to break out of it."""
    missing = why_unavailable()
    if missing is not None:
        yield not_held(_NAME, missing, fix=_FIX)
        return
    try:
        yield judge(self_test(agent=agent))
    except (AxonError, OSError) as error:
        yield not_held(_NAME, str(error), fix=_FIX)


def judge(test: SelfTest) -> Check:
    """Every forbidden act must have been denied."""
    allowed = [check.name for check in test.checks if not check.denied]
    if allowed or not test.ok:
        return not_held(_NAME, f"it allowed: {', '.join(allowed) or 'nothing, but the test did not finish'}", fix=_FIX)
    return held(_NAME, f"{len(test.checks)} forbidden acts tried, all denied", essential=True)
