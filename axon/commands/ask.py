"""``axon ask``: say something to an agent and hear its answer."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from axon.answer import Answer, write
from axon.board import choose_profile
from axon.client import Control
from axon.commands.arguments import AgentFolder, AsJson
from axon.headless import headless
from axon.person import person
from axon.report import as_json
from axon.session import session_folder
from axon.shipped import SHIPPED_COGNETS
from axon.watch import Watch
from runtime.abi.errors import NoAnswer, SessionLocked
from runtime.config.agent import load_agent
from runtime.config.cognet import CognetConfig, find_cognet, load_cognet
from runtime.config.providers import PROVIDERS
from runtime.kernel.engines.roles import resolve


def ask(
    folder: AgentFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say.", show_default=False)],
    *,
    engine: Annotated[
        str,
        typer.Option(
            metavar="PROVIDER",
            help="Fill every role with this provider and its default model, whatever axon.toml says: scripted.",
            show_default="as axon.toml says",
        ),
    ] = "",
    channel: Annotated[str, typer.Option(metavar="NAME", help="The channel it arrives on.")] = "person",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=86_400, help="How long to wait for the answer.")
    ] = 120.0,
    json: AsJson = False,
) -> None:
    """Say something to an agent and print its answer as it comes.

    Returns when the agent's wake has settled, that is, when it has answered for what was said. What it says is
    printed while it says it; the Python that it ran and what came of it stand indented between. Where no kernel runs,
    one is started for the question, without sensors and actuators, and ended afterwards; the session goes on where it
    was.

    Only an agent whose cognet is of mode "invocation" can be asked: a continuous one never says that it has answered.

    Exit status 1 when the wake failed or didn't settle in time.

    Example: axon ask examples/zero "what is 6*7? use python"
    """
    _check(folder, engine)
    with headless(folder, brain=True, engine=engine) as control:
        if engine:
            _check_engines(control, engine)
        answer = _ask(folder, control, text, channel=channel, timeout=timeout, quiet=json)
    if json:
        typer.echo(as_json(answer.as_dict()))
    elif answer.settled and not answer.failure:
        typer.secho("done", dim=True)
    if answer.failure:
        raise NoAnswer(f"the wake failed: {answer.failure}", seq=answer.seq)
    if not answer.settled:
        raise NoAnswer(f"the wake didn't settle in {timeout:g} s", seq=answer.seq)


def _ask(folder: Path, control: Control, text: str, *, channel: str, timeout: float, quiet: bool) -> Answer:
    with Watch(control.run, session_folder(folder, control.run.session)) as watch:
        seq = control.ask("say", text=text, channel=channel, source=person())["seq"]
        answer = Answer(seq, say=_nothing if quiet else write, show=_nothing if quiet else _dim)
        for found in watch.since(seq, deadline=time.monotonic() + timeout):
            answer.take(found)
            if answer.settled:
                break
    return answer


def _check(folder: Path, engine: str) -> None:
    """Refuse here what the kernel would refuse, while nothing has been started."""
    if engine and engine not in PROVIDERS:
        raise typer.BadParameter(f"{engine!r}: there is {', '.join(PROVIDERS)}", param_hint="--engine")
    agent = load_agent(folder, choose_profile(None))
    cognet: CognetConfig = load_cognet(find_cognet(agent, SHIPPED_COGNETS))
    if cognet.mode != "invocation":
        hint = "Say it with `axon say` and read on with `axon log show`."
        raise NoAnswer(f"the cognet {cognet.name!r} is continuous: it never says that it has answered", hint=hint)
    resolve(cognet, agent.engines, agent.folder, override=engine)


def _check_engines(control: Control, engine: str) -> None:
    """A kernel that somebody runs keeps its engines."""
    if control.run.command == os.getpid():
        return
    for role in control.ask("engines"):
        if role["provider"] != engine:
            raise SessionLocked(
                f"a kernel runs with {role['provider'] or 'nothing'} as {role['role']!r}, and keeps that",
                hint="Ask without --engine, or stop that kernel first.",
            )


def _dim(text: str) -> None:
    typer.secho(text, dim=True)


def _nothing(_: str) -> None:
    """For programs nothing is shown on the way."""
