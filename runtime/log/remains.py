"""What is left of a damaged log outside its live rows: its segment files, and the notes of them that still hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from runtime.abi.entries import EntryContext
from runtime.abi.errors import LogDamaged
from runtime.durable.database import open_reader
from runtime.log import catalog, inventory, segment
from runtime.log.archive import FOLDER
from runtime.log.catalog import Catalog, Floor, Gap, Sealed
from runtime.log.chain import GENESIS, Raw


class Remains(msgspec.Struct, frozen=True, kw_only=True):
    """Segments and gaps up to ``end``; ``floors`` are where live rows may go on, the likeliest first."""

    segments: list[Sealed]
    gaps: list[Gap]
    end: Floor
    floors: list[Floor]


def gather(path: Path, *, context: EntryContext) -> Remains:
    """Put the whole files and the old notes of gaps in order; what nothing tells of becomes a gap.

    Raises ``OSError``.
    """
    noted = _old_notes(path)
    pieces: list[Sealed | Gap] = [*noted.gaps, *_whole_files(path.parent, noted)]
    segments: list[Sealed] = []
    gaps: list[Gap] = []
    after, link = 0, GENESIS
    for piece in sorted(pieces, key=lambda each: (each.first, -each.last)):
        if piece.first <= after:
            continue  # told already, by a longer piece or by a gap
        before = piece.before if isinstance(piece, Sealed) else None
        if piece.first > after + 1 or (before is not None and before != link):
            first, last = (after + 1, piece.first - 1) if piece.first > after + 1 else (piece.first, piece.first)
            if before is None or piece.first == after + 1:
                continue  # nothing ties it to what came before
            gaps.append(inventory.lost(first, last, before, types={}, reason="no segment holds them", context=context))
        (segments if isinstance(piece, Sealed) else gaps).append(piece)  # type: ignore[arg-type]  # each to its kind
        after, link = piece.last, piece.chain
    end = Floor(after, link)
    return Remains(
        segments=segments, gaps=gaps, end=end, floors=[end, *([noted.floor] if noted.floor.seq > after else [])]
    )


def rows_of(session: Path, segments: list[Sealed]) -> Iterator[Raw]:
    """The entries of some segments: marks and unfinished blocks are learnt from them."""
    for sealed in segments:
        path = session / FOLDER / sealed.name
        footer = segment.read_footer(path)
        for seq in range(footer.first, footer.last + 1, footer.block_entries):
            yield from segment.read_block(path, footer, seq).raws()


def _old_notes(path: Path) -> Catalog:
    """What the damaged database says, if it can still be read and is whole in itself."""
    try:
        reader = open_reader(path)
        try:
            noted = catalog.read(reader)
            noted.check()
        finally:
            reader.close(True)
    except (apsw.Error, LogDamaged, UnicodeDecodeError):
        return Catalog(Floor(), [], [])
    return noted


def _whole_files(session: Path, noted: Catalog) -> list[Sealed]:
    """Every file that holds what it promises; those that were retired already are left out."""
    aged = {each.name: each.aged_s for each in noted.segments}
    found = []
    for path in inventory.files(session):
        try:
            footer, digest = segment.check_file(path)
        except LogDamaged:
            continue  # its range becomes a gap, and the inventory sets the file aside
        if footer.last > noted.retired:
            ends = (footer.first, footer.last, footer.before, footer.chain)
            size = path.stat().st_size
            found.append(Sealed(*ends, size, digest, footer.types, aged.get(path.name, 0.0)))
    return found
