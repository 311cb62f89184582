"""``axon new``: the beginnings of things that people write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from axon.cognet_template import FILES
from runtime.abi.errors import CognetExists
from runtime.config.agent import FILE as AGENT_FILE
from runtime.config.sections import NAME_PATTERN
from runtime.durable.files import make_folder, write_durable

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Begin something of your own.")


@app.command()
def cognet(
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="The folder to make; in an agent's, `cognet`.", show_default=False)
    ],
    *,
    mode: Annotated[
        Literal["invocation", "continuous"],
        typer.Option(help="Woken by what arrives, or by a clock of its own."),
    ] = "invocation",
) -> None:
    """Begin a cognet: a small brain that works, in a folder of its own.

    NAME is the folder, here or by its path. An agent uses the one named `cognet` beside its axon.toml, once that says
    `cognet = "cognet"`. The invocation brain answers each text; the continuous one wakes ten times a second and tells
    the newest reading of each channel. Nothing is overwritten.

    Example: axon new cognet my-robot/cognet --mode continuous
    """
    if not re.match(NAME_PATTERN, folder.name):
        raise typer.BadParameter(f"{folder.name!r}: a name has up to 64 letters, digits, '.', '-' and '_'")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CognetExists(f"{folder} is there already, and not empty", folder=str(folder))
    for name, text in FILES[mode].items():
        path = folder / name
        make_folder(path.parent)
        write_durable(path, text.encode())
    typer.echo(f"Made a cognet of mode {mode} in {folder}. {_next(folder)}")


def _next(folder: Path) -> str:
    """What there is to do now."""
    if folder.name == "cognet" and (folder.parent / AGENT_FILE).is_file():
        return f'Its agent uses it when {folder.parent / AGENT_FILE} says `cognet = "cognet"`.'
    return 'An agent uses it as the folder `cognet` beside its axon.toml, with `cognet = "cognet"` there.'
