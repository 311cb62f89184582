"""``axon exec``: a person's own blocks in the agent's capsule."""

from __future__ import annotations

import json as json_text
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from axon.commands.arguments import AgentFolder, AsJson
from axon.headless import headless
from axon.result_text import error_text, result_lines
from capsule.result import RunResult


def exec_(
    folder: AgentFolder,
    *,
    code: Annotated[
        list[str] | None, typer.Option("--code", metavar="CODE", help="A block of Python. May be given again.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", metavar="FILE", help="A block from a file; - is standard input.")
    ] = None,
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="For an agent that isn't running: no sandbox. Recorded in the log.")
    ] = False,
    volatile_data: Annotated[
        bool,
        typer.Option(
            "--volatile-data", help="For an agent that isn't running: accept a data folder that forgets at a power cut."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Execute Python in an agent's capsule, under its policy, and print what came of it.

    A running agent executes it beside what its brain does, in the same interpreter: a block sees the names that
    earlier ones bound. For one that isn't running a kernel is started without drivers and brain, and ended afterwards.
    Blocks are executed one after another, those of --code before those of --file. Action and result stand in the log.

    Exit status 1 when a block failed. Ctrl-C interrupts it.

    Example: axon exec examples/rover --code "x = 1; x + 1"
    """
    blocks = [*(code or []), *map(_read, file or [])]
    if not blocks:
        raise typer.BadParameter("give a block", param_hint="--code")
    ok = True
    with headless(folder, brain=False, sandbox=not no_sandbox, volatile_data=volatile_data) as control:
        for block in blocks:
            result = msgspec.convert(control.wait_for("exec", code=block), RunResult)
            _print(result, json=json)
            ok = ok and result.ok
    if not ok:
        raise typer.Exit(1)


def _read(path: Path) -> str:
    try:
        return sys.stdin.buffer.read().decode() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path}: not UTF-8: {error}", param_hint="--file") from error


def _print(result: RunResult, *, json: bool) -> None:
    if json:
        print(json_text.dumps(as_document(result), ensure_ascii=False), flush=True)
        return
    for line in result_lines(result):
        print(line, flush=True)
    if result.error is not None:
        print(error_text(result.error), file=sys.stderr, flush=True)


def as_document(result: RunResult) -> dict[str, Any]:
    """The result as ``--json`` writes it; ``value_error`` and ``cut`` only where there is one."""
    document: dict[str, Any] = msgspec.to_builtins(result)
    return {key: value for key, value in document.items() if value is not None or key not in ("value_error", "cut")}
