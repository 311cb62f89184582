"""Blocks through a real kernel and brain: alone, together, interrupted, after a death, and with a tool's call."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from axon.client import ask
from bench.agents import ROOT, agent, outputs
from bench.figure import Figure, at_most, median
from bench.outputs import commit_ms
from runtime.abi.errors import AgentNotRunning

LIMIT_S = 120.0
ROUNDS = 3
INTERRUPTS = 10
COMMIT = "one commit on this disk"
BETWEEN_S = 0.3
TOOL = '''
from runtime import tool


@tool
def nothing(number: int) -> int:
    """Give it back."""
    return number
'''
POLICY = '\n[policy."bench_tool.nothing"]\ndecision = "allow"\n'


def figures() -> Iterator[Figure]:
    """Several rounds, each beside its own commits, since a disk varies; of each figure the median round."""
    rounds = [one_round() for _ in range(ROUNDS)]
    beyond = [round_["run"] - round_["sync"] for round_ in rounds]
    middle = rounds[beyond.index(median(beyond))]
    sync, found = middle["sync"], {name: median([round_[name] for round_ in rounds]) for name in rounds[0]}
    yield at_most("run_p50", middle["run"], sync + 1.0, "ms", COMMIT, sync)
    yield at_most("run_p50_beyond_sync", median(beyond), 1.0, "ms", COMMIT, sync)
    yield at_most("eight_blocks_of_100_ms", found["together"], 150, "ms", "100 ms of sleep", 100)
    yield at_most("new_incarnation_ready", found["incarnation"], 100, "ms", COMMIT, sync)
    yield at_most("new_incarnation_from_nothing", found["cold"], None, "ms", "deaths at once, no spare yet", None)
    yield at_most("tool_call_p50", found["tool"], 0.6, "ms", "inside a block", None)
    yield at_most("interrupt_to_result", found["interrupt"], 50, "ms", "a block that loops", None)


def one_round() -> dict[str, float]:
    """The medians of one agent's life, in milliseconds; of the blocks together without the sync."""
    with agent("blocks") as folder:
        (folder / "modules").mkdir()
        (folder / "modules/bench_tool.py").write_text(TOOL)
        (folder / "axon.toml").write_text((folder / "axon.toml").read_text() + POLICY)
        before = commit_ms(str(folder / "before.db"))
        interrupts = measure(folder)
        sync = (before + commit_ms(str(folder / "after.db"))) / 2
        took = {name: outputs(folder, name)[-1] for name in ("lone", "together", "incarnation", "cold", "tool")}
    return {
        "sync": sync,
        "run": median(took["lone"]),
        "together": median(took["together"]) - sync,
        "incarnation": median(took["incarnation"]),
        "cold": median(took["cold"]),
        "tool": median(took["tool"]),
        "interrupt": median(interrupts),
    }


def measure(folder: Path) -> list[float]:
    """Run the agent until its cognet has reported, interrupt it some times; how long each took, in milliseconds."""
    command = [sys.executable, "-P", "-m", "axon", "run", str(folder), "--no-status"]
    kernel = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT_S
        while not (reported(folder) and outputs(folder, "tool")):
            if time.monotonic() > deadline or kernel.poll() is not None:
                raise RuntimeError("the cognet didn't report")
            time.sleep(0.5)
        for _ in range(INTERRUPTS):
            time.sleep(BETWEEN_S)
            ask(folder, "interrupt", by="bench")
        time.sleep(BETWEEN_S)
    finally:
        kernel.terminate()
        kernel.wait(60)
    return waits(folder)


def reported(folder: Path) -> bool:
    """Whether there is a log to look into."""
    try:
        return bool(ask(folder, "summary")["boot"]["first_wake_ms"])
    except AgentNotRunning:
        return False


def waits(folder: Path) -> list[float]:
    """From each interrupt's admission to that of the result it caused, as the log has it."""
    command = [sys.executable, "-P", "-m", "axon", "log", "show", str(folder), "--json"]
    command += ["--type", "axon:interrupt", "--type", "cognet:action:result"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: list[float] = []
    interrupt: dict[str, Any] | None = None
    for entry in map(json.loads, shown.splitlines()):
        if entry["type"] == "axon:interrupt":
            interrupt = entry
        elif interrupt is not None:
            found.append((entry["time"]["mono_us"] - interrupt["time"]["mono_us"]) / 1000)
            interrupt = None
    return found
