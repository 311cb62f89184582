"""``axon run``: check what was asked, then become the kernel's process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from axon.board import choose_profile
from axon.commands.arguments import HereOrFolder
from axon.duration import parse_duration
from axon.options import RunOptions, kernel_argv
from axon.shipped import SHIPPED_COGNETS
from runtime.config.agent import load_agent
from runtime.config.cognet import find_cognet, load_cognet
from runtime.kernel.engines.roles import resolve


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def run(
    folder: HereOrFolder = Path(),
    *,
    for_: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="TIME",
            parser=_seconds,
            help="Stop by itself after this time (20s, 5m, 1h30m), counted from when the brain is up and every sensor "
            "has delivered once.",
            show_default="until Ctrl-C",
        ),
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="At the end write what was counted to FILE, as JSON.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="new|ID", help="Begin a new session, or go on with that one.", show_default="the last"),
    ] = None,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run the brain inside the kernel's process, for debugging. No sandbox.")
    ] = False,
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Run the brain without its sandbox. Recorded in the log.")
    ] = False,
    volatile_data: Annotated[
        bool,
        typer.Option("--volatile-data", help="Accept a data folder that forgets at a power cut. Recorded in the log."),
    ] = False,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="The hardware profile to use.", show_default="detected")
    ] = None,
    no_status: Annotated[bool, typer.Option("--no-status", help="Don't show the live figures.")] = False,
) -> NoReturn:
    """Run an agent until Ctrl-C: its broker, its sensors, its log and its brain.

    Goes on where it was: the last session continues, its log is checked and folded, and nothing that was acknowledged
    is missing, however the run before ended. A second kernel on the same agent is refused.

    On a terminal it shows live figures; elsewhere one line every five seconds. Ctrl-C (or SIGTERM) stops in order:
    wakes are interrupted, the log is flushed and marked clean. A kill or a power cut is fine too.

    Example: axon run examples/rover --for 20s --summary out.json
    """
    options = RunOptions(
        folder=str(folder.absolute()),
        for_s=for_,
        summary=str(summary.absolute()) if summary else None,
        session=session,
        inline=inline,
        sandbox=not no_sandbox,
        volatile_data=volatile_data,
        profile=profile,
        status=not no_status,
    )
    check(options)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, kernel_argv(options))


def check(options: RunOptions) -> None:
    """Refuse here what the kernel would refuse, while nothing has been started."""
    agent = load_agent(Path(options.folder), choose_profile(options.profile))
    cognet = load_cognet(find_cognet(agent, SHIPPED_COGNETS))
    resolve(cognet, agent.engines, agent.folder)
    if options.summary:
        _check_summary(Path(options.summary))


def _check_summary(path: Path) -> None:
    """Now, not when the figures of an hour are to be written."""
    if not path.parent.is_dir():
        raise typer.BadParameter(f"{path}: no such folder", param_hint="--summary")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"{path} can't be written", param_hint="--summary")
