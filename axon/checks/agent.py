"""The agent: its configuration, its cognet, its emergency stop, and what its running kernel tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from axon.checks.check import Check, held, not_held, warning
from axon.client import ask
from axon.shipped import SHIPPED_COGNETS
from capsule.errors import AxonError
from runtime.abi.errors import AgentNotRunning
from runtime.abi.summary import Summary
from runtime.config.agent import AgentConfig
from runtime.config.cognet import find_cognet, load_cognet
from runtime.kernel.stop import StopLatch

ANSWER_S = 3.0


def cognet(agent: AgentConfig) -> Check:
    """The brain's declarations can be read and fit this release."""
    try:
        found = load_cognet(find_cognet(agent, SHIPPED_COGNETS))
    except AxonError as error:
        return not_held("cognet", error.message, fix=error.hint or "Correct it.")
    return held("cognet", f"{found.name}: {found.mode}, ABI {found.abi}", essential=True)


def stop_latch(folder: Path) -> Check:
    """Whether the emergency stop is on."""
    state = StopLatch.load(folder / "data").state
    if not state.latched:
        return held("emergency stop", "not latched")
    why = f"latched by {state.by}" + (f": {state.reason}" if state.reason else "")
    return warning("emergency stop", why, fix=f"Look at the robot, then: axon stop {folder} --clear")


def kernel_summary(folder: Path) -> Summary | None:
    """The running kernel's figures; None when none runs."""
    try:
        return msgspec.convert(ask(folder, "summary", timeout_s=ANSWER_S), Summary)
    except AgentNotRunning:
        return None


def kernel(summary: Summary | None) -> Iterator[Check]:
    """What the running kernel tells about its brain, its storage and the input it refused."""
    if summary is None:
        yield held("kernel", "not running")
        return
    yield held("kernel", f"running, session {summary.session}, {summary.last_seq} entries")
    yield brain(summary.brain)
    yield storage_state(summary.storage)
    yield refused(summary.refused)


def brain(state: str) -> Check:
    """Whether the cognet is loaded and wakes."""
    if state == "up":
        return held("brain", "loaded")
    if state == "loading":
        return warning("brain", "still loading", fix="Its imports or boot hooks take long, or it ends again and again.")
    return not_held("brain", state, fix="Correct the cognet; the kernel starts it again by itself.", essential=False)


def storage_state(state: str) -> Check:
    """Whether what is admitted becomes durable."""
    if state == "ok":
        return held("storage", "entries become durable", essential=True)
    fix = "Check the disk (full, read-only, removed, worn out); recording resumes by itself."
    return not_held("storage", f"{state}: what is admitted isn't durable", fix=fix)


def refused(counts: dict[str, int]) -> Check:
    """Input from outside that wasn't admitted, by error code."""
    if not any(counts.values()):
        return held("input", "nothing was refused")
    text = ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items()) if count)
    fix = "Ask the log who sends it: axon log show DIR --telemetry --type kernel:ingest:refused"
    return warning("input", f"refused: {text}", fix=fix)
