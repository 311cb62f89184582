"""``axon log``: read and check what an agent lived through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from axon.commands.arguments import AgentFolder, AsJson
from axon.entry_text import entry_line, event_line
from axon.report import as_json
from axon.selection import Selection, whole_types
from axon.session import session_folder
from runtime.abi.entries import Entry, decode, to_json
from runtime.log.reader import LogReader
from runtime.log.verify import Verification
from runtime.log.verify import verify as verify_log

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Read and check an agent's log.")
SessionId = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Which session.", show_default="the last")
]


@app.command()
def show(
    folder: AgentFolder,
    *,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only this type, or this family: cognet:stimulus:text, cognet:output, axon. May be given again.",
        ),
    ] = None,
    channel: Annotated[str, typer.Option(metavar="NAME", help="Only this channel.", show_default=False)] = "",
    after: Annotated[int, typer.Option(metavar="SEQ", min=0, help="Only what came after this entry.")] = 0,
    upto: Annotated[
        int | None, typer.Option(metavar="SEQ", min=1, help="Nothing after this entry.", show_default="the end")
    ] = None,
    last: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the last N that fit.", show_default="all")
    ] = None,
    telemetry: Annotated[
        bool, typer.Option("--telemetry", help="Show what the machine narrated about itself instead of entries.")
    ] = False,
    faults: Annotated[
        bool, typer.Option("--faults", help="Also what the brain's model did wrong; so does naming their --type.")
    ] = False,
    session: SessionId = None,
    json: AsJson = False,
) -> None:
    """Show the entries of a session in the order of the log, one a line.

    Works beside a running kernel and without one; never changes anything. A line is the entry's seq, the wall clock as
    the machine had it then (it may jump: the order is seq), type, channel and content. With --json each line is the
    whole entry as JSON.

    Example: axon log show examples/rover --type cognet:output:text --last 10
    """
    chosen = Selection(
        types=whole_types(types or [], telemetry=telemetry),
        channel=channel,
        after=after,
        upto=upto,
        last=last,
        faults=faults,
    )
    place = session_folder(folder, session)
    for line in chosen.newest((_events if telemetry else _entries)(place, chosen, json=json)):
        typer.echo(line)


@app.command()
def verify(folder: AgentFolder, *, session: SessionId = None, json: AsJson = False) -> None:
    """Check a session's log from its first entry to its last.

    Reads every byte and checks the hash chain and the order. Reports the number of entries, the last seq, how often
    the agent started and how often it hadn't ended cleanly before (a kill, a power cut: fine by itself), emissions
    that were cut off in the middle, and, if something is wrong, the first entry that isn't as it was written. Works
    beside a running kernel too.

    Exit status 1 when the log isn't as it was written.

    Example: axon log verify examples/rover --json
    """
    found = verify_log(session_folder(folder, session))
    typer.echo(as_json(found) if json else _verdict(found))
    if not found.ok:
        raise typer.Exit(1)


def _entries(place: Path, chosen: Selection, *, json: bool) -> Iterator[str]:
    reader = LogReader(place)
    after, last_seq = chosen.first(reader.last_seq), reader.last_seq
    while after > chosen.after and sum(1 for _ in _shown(reader, chosen, after)) < (chosen.last or 0):
        after = chosen.further_back(after, last_seq)
    for entry in _shown(reader, chosen, after):
        yield as_json(to_json(entry)) if json else entry_line(entry)


def _shown(reader: LogReader, chosen: Selection, after: int) -> Iterator[Entry]:
    for row in reader.rows(after=after, upto=chosen.upto, types=chosen.types or None):
        entry = decode(row.body, row.seq)
        if chosen.shows(entry):
            yield entry


def _events(place: Path, chosen: Selection, *, json: bool) -> Iterator[str]:
    for event in LogReader(place).telemetry(after_seq=chosen.after, types=chosen.types or None):
        if chosen.upto is not None and event.after_seq > chosen.upto:
            return
        if chosen.takes(event.data):
            yield as_json(event) if json else event_line(event)


def _verdict(found: Verification) -> str:
    facts = msgspec.to_builtins(found)
    reason = facts.pop("reason", None)
    lines = ["The log is as it was written." if found.ok else f"THE LOG IS DAMAGED: {reason}"]
    lines += [f"  {name.replace('_', ' '):<18} {value}" for name, value in facts.items() if value is not None]
    return "\n".join(lines)
