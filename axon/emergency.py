"""The emergency stop from outside the kernel: through it when it answers, beside it when it doesn't."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axon.client import ask
from axon.person import person
from runtime.abi.errors import AgentNotFound, AgentNotRunning
from runtime.config.agent import FILE
from runtime.durable.files import make_folder
from runtime.durable.locks import FileLock
from runtime.kernel.session import LOCK
from runtime.kernel.stop import StopLatch

ANSWER_S = 8.0
STARTING_S = 10.0
_STUCK = (
    "a kernel holds this agent but doesn't answer; actuators rest by themselves while it hangs, but it may go on: "
    "kill it (the file holds for its next start)"
)


def latch_stop(folder: Path, reason: str = "") -> dict[str, Any]:
    """Stop the agent; the report is the kernel's ``StopReport`` with ``running``: whether there is a kernel."""
    return _act(folder, "stop", args={"reason": reason}, change=lambda latch: latch.latch(by=person(), reason=reason))


def clear_stop(folder: Path) -> dict[str, Any]:
    """Let it move again; the same report."""
    return _act(folder, "clear", args={}, change=lambda latch: latch.clear(by=person()))


def _act(folder: Path, verb: str, *, args: dict[str, str], change: Callable[[StopLatch], None]) -> dict[str, Any]:
    """Ask the kernel; where none runs hold its place while the file is written; one that is stuck is told about."""
    if not (folder / FILE).is_file() and not (folder / "data").is_dir():
        raise AgentNotFound(f"there is no agent in {folder}", folder=str(folder))
    data = folder / "data"
    make_folder(data)
    lock, deadline = FileLock(data / LOCK), time.monotonic() + STARTING_S
    while True:
        try:
            return {"running": True, **ask(folder, verb, timeout_s=ANSWER_S, by=person(), **args)}
        except AgentNotRunning as error:
            stuck = "verb" in error.facts  # it took the question and gave no answer
            held = lock.acquire(wait_s=0.2)
        if held or stuck or time.monotonic() > deadline:
            break
    try:
        return _write(data, change, alone=held, clearing=verb == "clear")
    finally:
        lock.release()


def _write(data: Path, change: Callable[[StopLatch], None], *, alone: bool, clearing: bool) -> dict[str, Any]:
    """Change the file itself. A stuck kernel is never cleared behind its back."""
    latch = StopLatch.load(data)
    report: dict[str, Any] = {"running": not alone, "recorded": True, "confirmed": [], "unconfirmed": []}
    report |= {"seq": 0, "why": ""}
    if not alone and clearing:
        return {**report, "stopped": latch.latched, "recorded": False, "why": _STUCK}
    change(latch)
    latch.note_unlogged()
    try:
        latch.save()
    except OSError as error:
        return {**report, "stopped": latch.latched and alone, "recorded": False, "why": str(error)}
    if not alone:
        return {**report, "stopped": False, "why": _STUCK, "recorded": False}
    return {**report, "stopped": latch.latched}
