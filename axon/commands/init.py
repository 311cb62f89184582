"""``axon init``: a new agent's folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from axon.commands.arguments import AgentFolder
from axon.shipped import SHIPPED_COGNETS
from axon.template import AXON_TOML, BOOT_MD, ENGINE, GITIGNORE, NO_ENGINE
from runtime.abi.errors import AgentExists
from runtime.config.agent import FILE
from runtime.config.cognet import FILE as COGNET_FILE
from runtime.config.cognet import OWN, load_cognet
from runtime.config.sections import NAME_PATTERN

_FOLDERS = ("knowledge", "modules")


def init(
    folder: AgentFolder,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The agent's name on MQTT and in its log.", show_default="the folder's")
    ] = "",
    cognet: Annotated[str, typer.Option(metavar="NAME", help="The brain: a shipped cognet.")] = "reflex",
) -> None:
    """Make a new agent: a folder that `axon run` can start at once.

    Writes axon.toml (its sensors, its brain, every setting with a comment), boot.md (who it is), and the folders
    knowledge/ (what it should know) and modules/ (its own tools). What it lives through goes to data/, which appears
    at the first start and is never published.

    Nothing is overwritten: a folder that has an axon.toml is refused.

    Example: axon init my-robot && axon run my-robot
    """
    path = folder / FILE
    if path.exists():
        raise AgentExists(f"{path} is there already", folder=str(folder))
    words = {"name": _checked(name or _made_name(folder)), "cognet": cognet, "engines": _engines(cognet, folder)}
    for inner in _FOLDERS:
        (folder / inner).mkdir(parents=True, exist_ok=True)
        (folder / inner / ".gitkeep").touch()
    _write(folder / "boot.md", BOOT_MD.format(**words))
    _write(folder / ".gitignore", GITIGNORE)
    path.write_text(AXON_TOML.format(**words), encoding="utf-8")
    typer.echo(f"Made the agent {words['name']!r} in {folder}. Start it: axon run {shlex.quote(str(folder))}")


def _engines(cognet: str, folder: Path) -> str:
    """The tables of the roles that the cognet can't do without; wrong usage when there is no such cognet."""
    shipped = sorted(path.parent.name for path in SHIPPED_COGNETS.glob(f"*/{COGNET_FILE}"))
    if cognet not in (*shipped, OWN):
        raise typer.BadParameter(f"{cognet!r}: the cognet is {', '.join(shipped)}, or {OWN} for the agent's own folder")
    place = folder / OWN if cognet == OWN else SHIPPED_COGNETS / cognet
    if not (place / COGNET_FILE).is_file():
        return NO_ENGINE
    roles = [role for role, asked in load_cognet(place).engines.items() if not asked.optional]
    return "\n\n".join(ENGINE.format(role=role) for role in roles) or NO_ENGINE


def _write(path: Path, text: str) -> None:
    """A file that somebody has written already stays."""
    if not path.exists():
        path.write_text(text, encoding="utf-8")


def _checked(name: str) -> str:
    if not re.match(NAME_PATTERN, name):
        raise typer.BadParameter(f"{name!r}: a name has up to 64 letters, digits, '.', '-' and '_'")
    return name


def _made_name(folder: Path) -> str:
    """The folder's own name with everything else turned into hyphens."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")[:64] or "agent"
