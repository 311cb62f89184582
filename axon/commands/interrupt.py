"""``axon interrupt``: cancel what the brain is doing."""

from __future__ import annotations

import typer

from axon.client import ask
from axon.commands.arguments import AgentFolder, AsJson, Reason
from axon.person import person
from axon.report import as_json


def interrupt(folder: AgentFolder, *, reason: Reason = "", json: AsJson = False) -> None:
    """Cancel every wake that is open now, with the slow work it spawned.

    The agent stays up: its clock starts new wakes, stimuli that no wake has seen go to the next one. Outputs that
    were already called still stand. To keep a robot from moving use `axon stop`.

    Example: axon interrupt examples/rover --reason "wrong room"
    """
    answer = ask(folder, "interrupt", by=person(), reason=reason)
    typer.echo(as_json(answer) if json else f"interrupted; seq {answer['seq']}, durable")
