"""``axon doctor``: what this machine and this agent can promise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from axon.board import choose_profile
from axon.commands.arguments import AsJson
from axon.report import as_json


def doctor(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The agent to check as well.", show_default="this folder, if it is one"),
    ] = None,
    *,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="The hardware profile to use.", show_default="detected")
    ] = None,
    json: AsJson = False,
) -> None:
    """Check what this machine and this agent can promise.

    Looks at Python, the SQLite library, the file system of data/ and the log's settings on it, the sandbox (forbidden
    acts are really tried), the broker, the configuration with the origin of every value, the emergency stop, and, of a
    running kernel, its storage and the input it refused. Each line is held, not held, or a warning, with what to do
    about it.

    Exit status 1 when something essential isn't held.

    Example: axon doctor examples/rover
    """
    from rich.console import Console  # here, since `axon stop` must not wait for what only this command needs

    from axon.diagnosis import examine, write

    found = examine(folder or Path(), choose_profile(profile), wanted=folder is not None)
    if json:
        typer.echo(as_json(found))
    else:
        write(found, Console())
    if not found.ok:
        raise typer.Exit(1)
