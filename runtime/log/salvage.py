"""A damaged log is set aside whole, and its longest valid part becomes the new one; a cut anywhere only delays that.

Order of the swap: the new file is complete and synced as ``log.db.salvage``; the damaged one gets its new name; its
write-ahead log follows; the new file gets the name ``log.db``. While ``log.db`` is there, a salvage counts as
unfinished and is made again; when it is gone, the rest of the swap is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import msgspec

from runtime.abi.entries import STIMULUS_PREFIX, EntryContext, decode
from runtime.abi.errors import LogDamaged
from runtime.durable.database import is_damage, open_reader, open_writer, shm_path, wal_path
from runtime.durable.files import rename_durable, sync_folder
from runtime.log import catalog, chain, inventory, remains, schema
from runtime.log.carving import carve
from runtime.log.catalog import Floor
from runtime.log.chain import Raw
from runtime.log.marks import insert_mark, placed_marks
from runtime.log.settings import Mark
from runtime.log.storage import insertion

ROWS_AT_ONCE = 500
RECENT_SEGMENTS = 8
"""Where the note of unfinished blocks can't be read, they are looked for in so many: none runs for that long."""

Marks: TypeAlias = dict[tuple[str, str, str], tuple[Mark, int]]
"""By channel, source and epoch: the mark, and the entry it came with."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the next boot has to tell of a damage."""

    reason: str
    set_aside: str | None = None
    kept: int | None = None


def replace(path: Path, *, context: EntryContext, reason: str) -> None:
    """Set the log aside and put what holds of it in its place. Nobody may have it open. Raises ``apsw.Error``.

    Segments are files of their own and stay: live rows are kept from where those end.
    """
    name = _free_name(path)
    new = _salvage_path(path)
    _remove(new)
    connection = open_writer(new)
    try:
        schema.create(connection, agent_id=context.agent_id, session_id=context.session_id)
        kept = _copy_entries(path, connection, context)
        _copy_rest(path, connection)
        told = Told(reason=reason, set_aside=name, kept=kept)
        connection.execute("UPDATE meta SET note = ?, checked = ?", (msgspec.json.encode(told).decode(), kept))
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close(True)
    _remove_beside(new)
    _swap(path, path.with_name(name))


def finish_swap(path: Path) -> None:
    """Complete what an earlier start began, if it was cut in the middle."""
    new = _salvage_path(path)
    if not new.exists():
        return
    if path.exists():
        _remove(new)
        return
    reader = open_reader(new)
    try:
        told = msgspec.json.decode(reader.execute("SELECT note FROM meta").get, type=Told)
    finally:
        reader.close(True)
    _remove_beside(new)
    _swap(path, path.with_name(told.set_aside or _free_name(path)))


def _swap(path: Path, aside: Path) -> None:
    sync_folder(path.parent)
    if path.exists():
        rename_durable(path, aside)
    if wal_path(path).exists():
        rename_durable(wal_path(path), wal_path(aside))
    shm_path(path).unlink(missing_ok=True)
    rename_durable(_salvage_path(path), path)


def _copy_entries(path: Path, new: apsw.Connection, context: EntryContext) -> int:
    """What lies in segments is noted anew; live rows follow, from the first place where any do."""
    left = remains.gather(path, context=context)
    marks = _old_marks(path, upto=left.end.seq)
    actions = _old_carried(path)
    for row in remains.rows_of(path.parent, left.segments[-RECENT_SEGMENTS:]):
        _follow_action(actions, row)
    for row in remains.rows_of(path.parent, left.segments[-1:]):
        _mark(marks, row)
    kept, floor = left.end.seq, left.end
    for candidate in left.floors:
        kept = _copy_live(path, new, candidate, marks)
        if kept > candidate.seq:
            floor = candidate
            break
    else:
        kept, floor = left.end.seq, left.end
    gaps = left.gaps
    if floor.seq > left.end.seq:
        reason = "no segment holds them"
        gaps = [
            *gaps,
            inventory.lost(left.end.seq + 1, floor.seq, floor.chain, types={}, reason=reason, context=context),
        ]
    for gap in gaps:
        catalog.put_gap(new, gap)
    for sealed in left.segments:
        catalog.put_segment(new, sealed)
    catalog.put_floor(new, floor)
    catalog.carry(new, opened=actions, closed=set())
    _write_marks(new, marks)
    return kept


def _copy_live(path: Path, new: apsw.Connection, floor: Floor, marks: Marks) -> int:
    """Entries as far as the chain holds: first as SQLite finds them, then from the bytes of the file."""
    kept, previous = floor.seq, floor.chain
    for source in (_read, carve):
        for row in _holding(source(path, kept, previous), after=kept, previous=previous):
            _insert(new, row)
            kept, previous = row[0], row[3]
            _mark(marks, row)
    return kept


def _old_marks(path: Path, *, upto: int) -> Marks:
    """Marks that hold and came with an entry that lies in a segment; later ones are learnt from the entries."""
    marks: Marks = {}
    with _as_far_as_it_holds(), _reading(path) as reader:
        for mark, seq in placed_marks(reader):
            if seq <= upto:
                marks[mark.channel, mark.source_id, mark.epoch] = (mark, seq)
    return marks


def _old_carried(path: Path) -> dict[str, tuple[int, bytes]]:
    """Blocks started in a segment and not ended there, as far as the old notes of them hold."""
    found: dict[str, tuple[int, bytes]] = {}
    with _as_far_as_it_holds(), _reading(path) as reader:
        for seq, body in catalog.carried(reader):
            found[catalog.action_of(body, seq)] = (seq, body)
    return found


def _follow_action(actions: dict[str, tuple[int, bytes]], row: Raw) -> None:
    seq, type_, body, _ = row
    if type_ == b"cognet:action:python":
        actions[catalog.action_of(body, seq)] = (seq, body)
    elif type_ == b"cognet:action:result":
        actions.pop(catalog.action_of(body, seq), None)


def _read(path: Path, after: int, _previous: bytes) -> Iterator[Raw]:
    """Rows until SQLite meets something that it can't read; what lies beyond is looked for in the bytes."""
    with _as_far_as_it_holds(), _reading(path) as reader:
        rows: Any = reader.execute(f"SELECT {chain.COLUMNS} FROM entry WHERE seq > ? ORDER BY seq", (after,))
        yield from rows


def _holding(rows: Iterator[Raw], *, after: int, previous: bytes) -> Iterator[Raw]:
    """Rows up to the first that isn't what was written."""
    for row in rows:
        try:
            previous = chain.check([row], after=after, previous=previous)
        except (LogDamaged, TypeError, AttributeError, ValueError):  # a column may hold anything
            return
        after = row[0]
        yield row


def _insert(new: apsw.Connection, row: Raw) -> None:
    seq, type_, body, link = row
    new.execute(insertion(1)[0], (seq, type_.decode(), body, link))


def _mark(marks: Marks, row: Raw) -> None:
    """Marks come from the entries that are kept: a stimulus that was lost must be taken again when it is sent again."""
    seq, type_, body, _ = row
    if not type_.startswith(STIMULUS_PREFIX.encode()):
        return
    data = decode(body, seq).data
    captured, source = getattr(data, "captured", None), getattr(data, "source", None)
    if captured is None or source is None:
        return
    key = (source.channel, source.id or "", captured.epoch)
    high = max(captured.seq, marks[key][0].high if key in marks else 0)
    marks[key] = (Mark(channel=key[0], source_id=key[1], epoch=key[2], high=high), seq)


def _write_marks(new: apsw.Connection, marks: Marks) -> None:
    newest: dict[tuple[str, str], int] = {}
    for (channel, source_id, _), (_, seq) in marks.items():
        newest[channel, source_id] = max(seq, newest.get((channel, source_id), 0))
    for mark, seq in marks.values():
        retired = seq != newest[mark.channel, mark.source_id]
        insert_mark(new, msgspec.structs.replace(mark, retired=retired), seq=seq)


def _copy_rest(path: Path, new: apsw.Connection) -> None:
    """Boots and telemetry, as far as they can be read; nothing depends on them."""
    for table, columns in (
        ("boot", "number, boot_id, started_ms, after_seq, ended_ms, clean, reopens, note"),
        ("telemetry", "id, after_seq, events, body"),
    ):
        places = ", ".join("?" * len(columns.split(", ")))
        with _as_far_as_it_holds(), _reading(path) as reader:  # the damaged file keeps the rest
            rows = reader.execute(f"SELECT {columns} FROM {table}")
            while part := list(islice(rows, ROWS_AT_ONCE)):
                new.executemany(f"INSERT OR IGNORE INTO {table}({columns}) VALUES ({places})", part)


@contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection]:
    reader = open_reader(path)
    try:
        yield reader
    finally:
        reader.close(True)


@contextmanager
def _as_far_as_it_holds() -> Iterator[None]:
    """Read a damaged database until something in it can't be read. Raises what a disk that fails raises."""
    try:
        yield
    except (LogDamaged, apsw.ConstraintError):
        return
    except (apsw.Error, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise


def _salvage_path(path: Path) -> Path:
    return path.with_name(path.name + ".salvage")


def _free_name(path: Path) -> str:
    number = 1
    while path.with_name(f"{path.name}.damaged-{number}").exists():
        number += 1
    return f"{path.name}.damaged-{number}"


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _remove_beside(path)


def _remove_beside(path: Path) -> None:
    wal_path(path).unlink(missing_ok=True)
    shm_path(path).unlink(missing_ok=True)
    sync_folder(path.parent)
