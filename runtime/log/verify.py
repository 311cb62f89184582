"""The whole check of a session's log: structure, chain, order, groups, boots."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from runtime.abi.chunks import ChunkFold
from runtime.abi.entries import OUTPUT_PREFIX, decode
from runtime.abi.errors import LogDamaged, SessionNotFound, StorageFailed
from runtime.abi.link import Row
from runtime.durable.database import evict, open_reader
from runtime.durable.locks import FileLock
from runtime.log import schema
from runtime.log.archive import FOLDER
from runtime.log.catalog import Catalog, Floor, Sealed
from runtime.log.inspection import check_structure
from runtime.log.reader import LogReader
from runtime.log.segment import check_file, damaged


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """``ok`` when everything holds; else ``reason`` says what doesn't and ``first_bad_seq`` where, if it has a place.

    Entries that were retired don't count; those that damage took are in ``lost`` and the log isn't ``ok``.
    ``truncated_chunks`` counts output groups that no ``final`` closes: interrupted emissions, not damage.
    """

    ok: bool
    entries: int
    last_seq: int
    boots: int
    unclean_boots: int
    seq_monotonic: bool
    truncated_chunks: int
    integrity: str
    segments: int = 0
    retired_upto: int = 0
    lost: int = 0
    first_bad_seq: int | None = None
    reason: str | None = None


def verify(folder: Path) -> Verification:
    """Check the log in a session's folder; also while a kernel writes it. Blocks. Raises ``SessionNotFound``.

    Without a kernel the page cache is dropped first, so that the disk is checked and not what memory says of it.
    """
    path = folder / schema.FILE_NAME
    if not path.exists():
        raise SessionNotFound(f"{folder} holds no log", folder=str(folder))
    _evict_unused(folder, path)
    integrity, problem = _structure(folder, path)
    noted, bad_segment = _segments(folder)
    entries, first, last, chunks, bad = _entries(folder, noted)
    boots, unclean = _boots(folder)
    bad = bad or bad_segment
    problem = problem or bad
    lost = sum(gap.last - gap.first + 1 for gap in noted.lost)
    return Verification(
        ok=problem is None,
        entries=entries,
        last_seq=last,
        boots=boots,
        unclean_boots=unclean,
        seq_monotonic=entries == 0
        or last - first + 1 - sum(gap.last - gap.first + 1 for gap in noted.lost if gap.first > first) == entries,
        truncated_chunks=chunks,
        integrity=integrity,
        segments=len(noted.segments),
        retired_upto=noted.retired,
        lost=lost,
        first_bad_seq=(bad.facts.get("seq") or last + 1) if bad else None,
        reason=problem.message if problem else None,
    )


def _evict_unused(folder: Path, path: Path) -> None:
    """Only when neither a kernel nor another reader has it open."""
    writer, readers = FileLock(folder / "writer.lock"), FileLock(folder / "log.lock")
    try:
        if writer.acquire() and readers.acquire():
            evict(path)
    except PermissionError:
        return  # somebody who may only read: the check is of what memory says
    finally:
        readers.release()
        writer.release()


def _structure(folder: Path, path: Path) -> tuple[str, LogDamaged | None]:
    lock = FileLock(folder / "log.lock")
    if not lock.acquire(shared=True, wait_s=10):
        raise StorageFailed("the log is being recovered", path=str(path))
    try:
        connection = open_reader(path)
        try:
            schema.check_format(connection)
            check_structure(connection)
        finally:
            connection.close(True)
    except LogDamaged as damage:
        return damage.message, damage
    except apsw.Error as error:
        return str(error), LogDamaged(f"SQLite reports: {error}", seq=0)
    finally:
        lock.release()
    return "ok", None


def _segments(folder: Path) -> tuple[Catalog, LogDamaged | None]:
    """What is noted outside the live rows, and the first thing that is wrong with it or with a segment's file."""
    noted = Catalog(Floor(), [], [])
    try:
        noted = LogReader(folder).catalog()
        noted.check()
        for gap in noted.lost:
            reason = decode(gap.body, gap.last).data.text  # type: ignore[union-attr]  # a gap's body is a message
            return noted, LogDamaged(reason, seq=gap.first)
        for sealed in noted.segments:
            _check_segment(folder, sealed)
    except LogDamaged as damage:
        return noted, damage
    return noted, None


def _check_segment(folder: Path, sealed: Sealed) -> None:
    path = folder / FOLDER / sealed.name
    try:
        if check_file(path)[1] != sealed.digest:
            raise damaged(path, "it isn't the one that was noted")
    except FileNotFoundError:
        if any(each.name == sealed.name for each in LogReader(folder).catalog().segments):  # else it was retired
            raise damaged(path, "it is missing") from None


def _entries(folder: Path, noted: Catalog) -> tuple[int, int, int, int, LogDamaged | None]:
    """Count, first and last ``seq``, truncated groups, and the first damage, over the rows that hold."""
    fold, count, first, last = ChunkFold(), 0, 0, 0
    gone = {gap.last for gap in noted.gaps}
    try:
        for row in LogReader(folder).rows():
            if row.seq in gone or (not count and _is_told(row)):
                continue  # it stands for entries that aren't there
            first = first or row.seq
            count, last = count + 1, row.seq
            _feed(fold, row)
    except LogDamaged as damage:
        return count, first, last, len(fold.truncated()), damage
    return count, first, last, len(fold.truncated()), None


def _is_told(row: Row) -> bool:
    """Whether a first entry is the one that tells of a retention that happened since the notes were read."""
    return row.seq > 1 and row.body.startswith(b'{"type":"axon:system:message"') and b'"type":"retention"' in row.body


def _feed(fold: ChunkFold, row: Row) -> None:
    """An entry whose chain holds and that can't be read was written wrong."""
    try:
        entry = decode(row.body, row.seq)
    except msgspec.ValidationError as error:
        raise LogDamaged(f"entry {row.seq} can't be read: {error}", seq=row.seq) from error
    if row.type.startswith(OUTPUT_PREFIX):
        fold.feed(entry)


def _boots(folder: Path) -> tuple[int, int]:
    """How many, and how many ended without a mark; one that is running now isn't over."""
    try:
        boots = LogReader(folder).boots()
    except LogDamaged:
        return 0, 0
    unclean = sum(not boot.clean for boot in boots)
    return len(boots), unclean - (1 if unclean and _running(folder) else 0)


def _running(folder: Path) -> bool:
    lock = FileLock(folder / "writer.lock")
    try:
        if lock.acquire():
            lock.release()
            return False
    except PermissionError:
        return False
    return True
