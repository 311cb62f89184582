"""``axon approve``: a person's word about the calls that policy doesn't decide alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from axon.client import ask
from axon.commands.arguments import AgentFolder, AsJson
from axon.person import person
from axon.report import as_json
from runtime.abi.clock import wall_ms


def approve(
    folder: AgentFolder,
    id_: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The call, as the agent named it when it asked.", show_default=False),
    ] = None,
    *,
    deny: Annotated[bool, typer.Option("--deny", help="Refuse the call instead.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Only show what waits.")] = False,
    json: AsJson = False,
) -> None:
    """Approve or deny a tool's call that waits for a person.

    A rule of [policy] with decision = "escalate" asks before each call. The answer is for exactly that call with those
    arguments, once; it is recorded with your user name, and the call is made when that record is durable. A call that
    nobody answers in time is denied.

    Without ID it shows what waits and, on a terminal, asks about each. Exit status 1 when the call isn't waiting any
    more.

    Examples: axon approve examples/rover; axon approve examples/rover kfdrtzw --deny
    """
    if id_ is None and deny:
        raise typer.BadParameter("name the call to deny: axon approve DIR ID --deny")
    if id_ is not None and list_:
        raise typer.BadParameter("--list shows all that waits; leave out the ID")
    if id_ is not None:
        answered = _answer(folder, id_, deny=deny)
        typer.echo(as_json(answered) if json else _done(answered, deny=deny))
        return
    pending = ask(folder, "approvals")
    if json or list_ or not (sys.stdin.isatty() and sys.stdout.isatty()):
        typer.echo(as_json(pending) if json else "\n".join(map(_line, pending)) or "nothing waits")
        return
    _ask_about(folder, pending)


def _ask_about(folder: Path, pending: list[dict[str, Any]]) -> None:
    """One question after the other."""
    for one in pending:
        typer.echo(_line(one))
        word = typer.prompt("approve? [y]es, [n]o, later", default="later", show_default=False).strip().lower()
        if word in ("y", "yes", "n", "no"):
            deny = word.startswith("n")
            typer.echo(_done(_answer(folder, one["id"], deny=deny), deny=deny))
    if not pending:
        typer.echo("nothing waits")


def _answer(folder: Path, id_: str, *, deny: bool) -> dict[str, Any]:
    answered: dict[str, Any] = ask(folder, "approve", id=id_, deny=deny, by=person())
    return answered


def _done(answered: dict[str, Any], *, deny: bool) -> str:
    return f"{'denied' if deny else 'approved'}: {_call(answered)}"


def _line(one: dict[str, Any]) -> str:
    left_s = max(0, round(one["ask_s"] - (wall_ms() - one["asked_ms"]) / 1000))
    return f"{one['id']}  {_call(one)}  (rule {one['rule']}, {left_s} s left)"


def _call(one: dict[str, Any]) -> str:
    return f"{one['name']}({', '.join(f'{name}={value!r}' for name, value in one['arguments'].items())})"
