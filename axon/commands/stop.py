"""``axon stop``: the emergency stop, with or without a running kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from axon.commands.arguments import AgentFolder, AsJson, Reason
from axon.emergency import clear_stop, latch_stop
from axon.report import as_json


def stop(
    folder: AgentFolder,
    *,
    clear: Annotated[bool, typer.Option("--clear", help="A person has looked: moving is safe again.")] = False,
    reason: Reason = "",
    json: AsJson = False,
) -> None:
    """Emergency stop: nothing may move until a person clears it.

    Whatever the agent does from now on moves nothing. Acts first and records after, and reports each: "stopped" (no
    actuator is sent anything), which actuators have said that they are at rest and which haven't within a second, and
    "recorded". It holds through restarts, power cuts and new sessions (data/stop.json; a file that can't be read means
    stopped). Without a running kernel the next start finds it. Sensors, log and brain go on: stop is about the body.

    Exit status 1 when it isn't stopped, isn't recorded, or an actuator hasn't confirmed.

    Examples: axon stop examples/rover --reason "smoke"; axon stop examples/rover --clear
    """
    report = clear_stop(folder) if clear else latch_stop(folder, reason)
    typer.echo(as_json(report) if json else _text(folder, report, clear=clear))
    if not report["recorded"] or report["stopped"] == clear or report["unconfirmed"]:
        raise typer.Exit(1)


def _text(folder: Path, report: dict[str, Any], *, clear: bool) -> str:
    """Each promise in words."""
    state = "stopped" if report["stopped"] else "not stopped"
    recorded = "recorded" if report["recorded"] else f"NOT RECORDED: {report['why']}"
    lines = [f"{state}; {recorded}"]
    if report["confirmed"]:
        lines.append(f"{'Released' if clear else 'At rest'}: {', '.join(report['confirmed'])}")
    if report["unconfirmed"]:
        lines.append(f"NOT CONFIRMED: {', '.join(report['unconfirmed'])}{'' if clear else ' (look at the robot)'}")
    if not clear and not report["running"]:
        lines.append("No kernel runs: the next start of this agent is stopped.")
    if not clear:
        lines.append(f"Clear it when a person has looked: axon stop {folder} --clear")
    return "\n".join(lines)
