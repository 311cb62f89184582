"""The ``axon`` command: one program, a command for each thing a person does with an agent."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from axon.commands import knowledge, log, new
from axon.commands.approve import approve
from axon.commands.ask import ask
from axon.commands.doctor import doctor
from axon.commands.exec import exec_
from axon.commands.init import init
from axon.commands.interrupt import interrupt
from axon.commands.run import run
from axon.commands.say import say
from axon.commands.stop import stop
from axon.report import error_lines, unforeseen
from capsule.errors import AxonError

app = typer.Typer(
    name="axon",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Run embodied agents: sensors in over MQTT, one durable log, a brain at its own rhythm.\n\n"
    "An agent is a folder with an axon.toml. `axon init DIR` makes one, `axon run DIR` runs it, and the other commands "
    "talk to it from another terminal.\n\n"
    "Exit status: 0 done, 1 refused or failed (the code and what to do are printed), 2 wrong usage.",
)


def _say_version(asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if asked:
        typer.echo(f"axon {version('axon-edge')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which release this is.")
    ] = False,
) -> None:
    """What stands before a command."""


for command in (init, run, ask, say, interrupt, stop, approve, doctor):
    app.command()(command)
app.command("exec")(exec_)
app.add_typer(log.app, name="log")
app.add_typer(knowledge.app, name="knowledge")
app.add_typer(new.app, name="new")


def main() -> None:
    """Run the command line; a refusal is printed as its code, what happened and what to do."""
    try:
        app()
    except AxonError as error:
        print(error_lines(error), file=sys.stderr)
        sys.exit(1)
    except UnicodeEncodeError:
        print("the arguments must be UTF-8", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(error_lines(unforeseen(error)), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
