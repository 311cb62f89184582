"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

AgentFolder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DIR", help="The agent: a folder with an axon.toml.", show_default=False)
]
HereOrFolder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DIR", help="The agent: a folder with an axon.toml.", show_default="this folder")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON instead of text, for programs.")]
Reason: TypeAlias = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is recorded.", show_default=False)]
