"""``axon say``: words for a running agent."""

from __future__ import annotations

from typing import Annotated

import typer

from axon.client import ask
from axon.commands.arguments import AgentFolder, AsJson
from axon.person import person
from axon.report import as_json


def say(
    folder: AgentFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say.", show_default=False)],
    *,
    channel: Annotated[str, typer.Option(metavar="NAME", help="The channel it arrives on.")] = "person",
    json: AsJson = False,
) -> None:
    """Say something to a running agent: a text stimulus, as if it had come from a sensor.

    Answers with the stimulus's seq once it is durable: from then on it is in the log whatever happens. What the
    agent does about it is its brain's affair; its words come as cognet:output:text.

    Example: axon say examples/rover "come back to the charger"
    """
    answer = ask(folder, "say", text=text, channel=channel, source=person())
    typer.echo(as_json(answer) if json else f"seq {answer['seq']}, durable")
