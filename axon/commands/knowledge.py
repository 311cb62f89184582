"""``axon knowledge``: look into what an agent keeps, and change it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from axon.commands.arguments import AgentFolder, AsJson
from axon.library import library, remove_entry, write_entry
from axon.report import as_json
from runtime.abi.errors import KnowledgeTooLarge
from runtime.abi.knowledge import MAX_ENTRY_BYTES, KnowledgeEntry

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look into an agent's knowledge, and change it.")
EntryName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="An entry's name: notes/today.md.", show_default=False)
]
_ALONE = " (no kernel runs: not traced)"


@app.command("list")
def list_(
    folder: AgentFolder,
    *,
    match: Annotated[
        str, typer.Option(metavar="TEXT", help="Only entries with this in name or description.", show_default=False)
    ] = "",
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only the first N of them.", show_default="all")
    ] = None,
    json: AsJson = False,
) -> None:
    """List the entries of an agent's knowledge, ordered by name.

    A line is the size in bytes, the name and what the entry says of itself. Entries of a module are named
    <module>/... and can't be changed from here. With --json one array, each entry with its path.

    Example: axon knowledge list examples/rover --match dock
    """
    found = library(folder).entries(match=match, limit=limit)
    if json:
        typer.echo(as_json(found))
        return
    for entry in found:
        typer.echo(_line(entry))


@app.command()
def read(folder: AgentFolder, name: EntryName, *, json: AsJson = False) -> None:
    """Write an entry's bytes to standard output, exactly as they are.

    With --json as {"name", "content"}, which takes text.

    Exit status 1 when there is no such entry (KNOWLEDGE_NOT_FOUND).

    Example: axon knowledge read examples/rover notes/dock.md
    """
    if json:
        typer.echo(as_json({"name": name, "content": library(folder).read(name)}))
    else:
        typer.echo(library(folder).read_bytes(name), nl=False)


@app.command()
def write(
    folder: AgentFolder,
    name: EntryName,
    *,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What to write.", show_default="standard input")
    ] = None,
    json: AsJson = False,
) -> None:
    """Replace an entry, or make it, with the bytes of a file or of standard input.

    Returns when it is on the disk; after a power cut it is the old entry or the new one. Goes through the kernel when
    one runs, which traces it; else it is written beside it, under the same lock, so two writers wait for each other.

    Example: echo "Mind the step." | axon knowledge write examples/rover notes/stairs.md
    """
    content = _content(file)
    traced = write_entry(folder, name, content)
    if json:
        typer.echo(as_json({"name": name, "size": len(content), "traced": traced}))
    else:
        typer.echo(f"{name}: {len(content):,} bytes, durable{'' if traced else _ALONE}")


@app.command()
def rm(folder: AgentFolder, name: EntryName, *, json: AsJson = False) -> None:
    """Remove an entry; nothing happens when there is none.

    Returns when its absence is on the disk. Through the kernel when one runs, like write.

    Example: axon knowledge rm examples/rover notes/stairs.md
    """
    removed, traced = remove_entry(folder, name)
    if json:
        typer.echo(as_json({"name": name, "removed": removed, "traced": traced and removed}))
    else:
        typer.echo(f"{name}: {'removed' if removed else 'was not there'}{'' if traced or not removed else _ALONE}")


def _line(entry: KnowledgeEntry) -> str:
    return f"{entry.size:>9,}  {entry.name:<40} {entry.description}".rstrip()


def _content(file: Path | None) -> bytes:
    """No more than an entry may have, however much is offered."""
    if file is None:
        data = sys.stdin.buffer.read(MAX_ENTRY_BYTES + 1)
    else:
        with file.open("rb") as stream:
            data = stream.read(MAX_ENTRY_BYTES + 1)
    if len(data) > MAX_ENTRY_BYTES:
        where = file or "standard input"
        raise KnowledgeTooLarge(f"{where} has more than {MAX_ENTRY_BYTES:,} bytes", size_bytes=len(data))
    return data
