"""Comparing the segment files with what is noted of them, before a boot: what was half done is ended or undone.

A file nobody noted is removed when its entries are live or were retired, else set aside; a segment whose file is
missing or isn't what was written becomes a gap, its file set aside. Every step may be cut, and is done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw

from runtime.abi.entries import EntryContext
from runtime.abi.errors import LogDamaged
from runtime.durable.files import TEMPORARY, rename_durable, sync_folder
from runtime.log import catalog, retention, segment
from runtime.log.archive import FOLDER
from runtime.log.catalog import Catalog, Gap, Sealed


def files(session: Path) -> list[Path]:
    """The segment files that are there, by their entries."""
    folder = session / FOLDER
    return sorted(path for path in folder.glob("*.seg") if segment.range_of(path.name)) if folder.is_dir() else []


def settle(connection: apsw.Connection, session: Path, *, context: EntryContext, thorough: bool) -> str | None:
    """Make files and notes agree; returns what was wrong, None when nothing that was kept. ``thorough`` reads all.

    Raises ``apsw.Error``, ``OSError``.
    """
    if not (session / FOLDER).is_dir() and not catalog.sealed_upto(connection):
        return None
    noted = catalog.read(connection)
    wrong = list(_wrong(session / FOLDER, noted, thorough=thorough))
    if wrong:
        with connection:
            for sealed, reason in wrong:
                _note_loss(connection, sealed, noted, reason=reason, context=context)
    known = {each.name for each in noted.segments} - {sealed.name for sealed, _ in wrong}
    told = [reason for _, reason in wrong] + _clear(session, known, _covered(connection, noted))
    return "; ".join(told) if told else None


def _wrong(folder: Path, noted: Catalog, *, thorough: bool) -> Iterator[tuple[Sealed, str]]:
    for sealed in noted.segments:
        path = folder / sealed.name
        try:
            if path.stat().st_size != sealed.size_bytes:
                yield sealed, f"segment {sealed.name} isn't as long as it was"
            elif thorough and segment.check_file(path)[1] != sealed.digest:
                yield sealed, f"segment {sealed.name} isn't the one that was noted"
        except FileNotFoundError:
            yield sealed, f"segment {sealed.name} is missing"
        except LogDamaged as damage:
            yield sealed, damage.message


def _note_loss(
    connection: apsw.Connection, sealed: Sealed, noted: Catalog, *, reason: str, context: EntryContext
) -> None:
    """What of the segment is still live stays so; the rest can't be read any more."""
    floor = noted.floor
    catalog.drop_segment(connection, sealed.first)
    last, link = (sealed.last, sealed.chain) if floor.seq >= sealed.last else (floor.seq, floor.chain)
    if last >= sealed.first:
        catalog.put_gap(connection, lost(sealed.first, last, link, types=sealed.types, reason=reason, context=context))


def lost(first: int, last: int, chain: bytes, *, types: dict[str, int], reason: str, context: EntryContext) -> Gap:
    """The note that entries were lost to damage."""
    text = f"Entries {first} to {last} were lost: {reason}."
    body = retention.told(context, "damage", text, first=first, last=last, chain=chain, reason=reason)
    return Gap("damage", first, last, chain, {name: seq for name, seq in types.items() if seq <= last}, body)


def _covered(connection: apsw.Connection, noted: Catalog) -> tuple[int, int, int]:
    """Entries up to the first were retired; those above the second, up to the third, are live."""
    last = connection.execute("SELECT ifnull(max(seq), 0) FROM entry").get
    return noted.retired, noted.floor.seq, int(last)


def _clear(session: Path, known: set[str], covered: tuple[int, int, int]) -> list[str]:
    """Remove what was left half done; set aside, and tell of, a file that holds what nothing else does."""
    folder, told = session / FOLDER, []
    if not folder.is_dir():
        return []
    for path in folder.iterdir():
        if path.name.startswith(".") and path.name.endswith(TEMPORARY):
            path.unlink()
    retired, floor, last = covered
    for path in files(session):
        first, end = segment.range_of(path.name) or (0, 0)
        if path.name in known:
            continue
        if end <= retired or (first > floor and end <= last):
            path.unlink()
        else:
            aside = _free_name(path)
            rename_durable(path, aside)
            told.append(f"it is kept as {FOLDER}/{aside.name}")
    sync_folder(folder)
    return told


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside
