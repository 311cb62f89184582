"""Opening the log: whatever end came before, what is in it afterwards is whole, checked and told."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import msgspec

from capsule.errors import AxonError
from runtime.abi.clock import wall_ms
from runtime.abi.entries import EntryContext, PythonActionEntry, decode
from runtime.abi.errors import LogDamaged, SessionLocked, StorageFailed
from runtime.abi.link import Row
from runtime.abi.payloads import ActionError, ActionResult, SystemMessage
from runtime.durable.database import copy_back, is_damage, open_writer
from runtime.durable.files import make_folder, remove_leftovers, write_durable
from runtime.durable.gates import check_file_system, check_sqlite
from runtime.durable.locks import FileLock
from runtime.durable.space import Reserve, is_full
from runtime.log import catalog, inspection, inventory, salvage, schema, wal
from runtime.log.admission import Admission
from runtime.log.marks import read_marks
from runtime.log.pending import Batch
from runtime.log.salvage import Told
from runtime.log.settings import RESERVE_NAME, LogSettings, Mark, Recovery
from runtime.log.storage import insertion

OPEN_WAIT_S = 5.0
LOCK_WAIT_S = 0.5
VANISHED = b"The log was gone; this stands where it was.\n".ljust(4096)


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A log ready to be written: its connection, where it stands, and its newest rows."""

    connection: apsw.Connection
    admission: Admission
    recovery: Recovery
    marks: list[Mark]
    first_seq: int
    tail: list[Row]
    boot: int
    lock: FileLock


def open_log(folder: Path, *, context: EntryContext, settings: LogSettings) -> Opened:
    """Open, check, repair, and begin a boot. Blocks.

    Raises ``SqliteUnsupported``, ``StorageUnsupported``, ``SessionLocked``, ``LogVersion``, ``StorageFailed``.
    """
    began = time.monotonic()
    check_sqlite()
    try:
        make_folder(folder)
        check_file_system(folder, volatile_data=settings.volatile_data)
        lock = FileLock(folder / "writer.lock")
        if not lock.acquire(wait_s=LOCK_WAIT_S):  # a check of the log holds it for a moment
            raise SessionLocked("another kernel writes this session", session=context.session_id)
    except OSError as error:
        if isinstance(error, AxonError):
            raise
        raise _failed(folder, error) from error
    try:
        try:
            return _open(folder, context, settings, lock=lock, began=began)
        except (apsw.Error, OSError) as error:
            if not is_full(error):
                raise
            Reserve(folder / RESERVE_NAME).give_up()
            return _open(folder, context, settings, lock=lock, began=began)
    except BaseException as error:
        lock.release()
        if isinstance(error, apsw.Error) or (isinstance(error, OSError) and not isinstance(error, AxonError)):
            raise _failed(folder, error) from error
        raise


def _failed(folder: Path, error: BaseException) -> StorageFailed:
    return StorageFailed(f"the log in {folder} can't be opened: {error}", folder=str(folder))


def _open(folder: Path, context: EntryContext, settings: LogSettings, *, lock: FileLock, began: float) -> Opened:
    readers = FileLock(folder / "log.lock")
    if not readers.acquire(wait_s=OPEN_WAIT_S):
        raise StorageFailed("a reader holds the log", folder=str(folder))
    try:
        path = folder / schema.FILE_NAME
        connection, told = _open_sound(path, context, settings)
        try:
            told = _settle_segments(connection, folder, context, told)
        except BaseException:
            connection.close(True)
            raise
    finally:
        readers.release()
    try:
        return _begin_boot(connection, context, settings, lock=lock, began=began, told=told)
    except BaseException:
        connection.close(True)
        raise


def _open_sound(path: Path, context: EntryContext, settings: LogSettings) -> tuple[apsw.Connection, Told | None]:
    """A connection on a log that holds, and what was wrong with it."""
    remove_leftovers(path.parent)
    salvage.finish_swap(path)
    left = wal.scan(path)
    try:
        _check_there(path, written=bool(left.frames))
        connection = _open_checked(path, context, settings)
    except (apsw.Error, UnicodeDecodeError, LogDamaged) as error:
        if not (isinstance(error, LogDamaged) or is_damage(error)):
            raise
        reason = error.message if isinstance(error, LogDamaged) else str(error)
        salvage.replace(path, context=context, reason=reason)
        connection = _open_checked(path, context, settings)
    try:
        return connection, _settle_wal(connection, left)
    except BaseException:
        connection.close(True)
        raise


def _settle_wal(connection: apsw.Connection, left: wal.WalLeft) -> Told | None:
    """What a salvage left to be told, or what SQLite left out of the write-ahead log; what holds of that is moved.

    More than a cut leaves stays where it is until the boot's commit tells of it.
    """
    note = connection.execute("SELECT note FROM meta").get
    valid_frames = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
    lost = None if note else left.lost(valid_frames=valid_frames)
    if left.is_of_a_cut(valid_frames=valid_frames):
        copy_back(connection)
    if note:
        return msgspec.json.decode(note, type=Told)
    return Told(reason=lost) if lost else None


def _check_there(path: Path, *, written: bool) -> None:
    """A session that was written and has no log isn't a new one; what its write-ahead log holds must be kept.

    SQLite would remove that as soon as it opened an empty file, so something that is no database takes its place.
    """
    if path.exists() and path.stat().st_size:
        return
    if written or _was_used(path):
        write_durable(path, VANISHED)
        raise LogDamaged("the log's file is gone or empty, and this session was written before", seq=1)


def _was_used(path: Path) -> bool:
    """Whether a kernel has written in this session: the reserve is taken once the log exists, segments later."""
    return (path.parent / RESERVE_NAME).exists() or bool(inventory.files(path.parent))


def _settle_segments(
    connection: apsw.Connection, folder: Path, context: EntryContext, told: Told | None
) -> Told | None:
    """Files and notes agree afterwards; damage found here is told with any found before, once."""
    suspect = connection.execute("SELECT suspect FROM meta").get
    wrong = inventory.settle(connection, folder, context=context, thorough=suspect is not None)
    if wrong is None:
        return told
    told = Told(
        reason=f"{told.reason}; {wrong}" if told else wrong,
        set_aside=told.set_aside if told else None,
        kept=told.kept if told else None,
    )
    connection.execute("UPDATE meta SET note = ?", (msgspec.json.encode(told).decode(),))
    return told


def _open_checked(path: Path, context: EntryContext, settings: LogSettings) -> apsw.Connection:
    connection = open_writer(path, vfs=settings.vfs)
    try:
        if schema.is_empty(connection):
            if _was_used(path):
                raise LogDamaged("the log is empty, and this session was written before", seq=1)
            schema.create(connection, agent_id=context.agent_id, session_id=context.session_id)
        _check_writable(connection)
        schema.check_format(connection)
        schema.complete(connection)
        inspection.inspect(connection, window=settings.window_entries)
        read_marks(connection)
    except BaseException:
        connection.close(True)
        raise
    return connection


def _check_writable(connection: apsw.Connection) -> None:
    """A file that may be written and whose header forbids it isn't what was written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("UPDATE meta SET one = 1")
    except apsw.ReadOnlyError as error:
        if connection.read("main", 0, 18, 2)[1] == b"\2\2":
            raise
        raise LogDamaged("the log's header isn't what was written", seq=1) from error
    finally:
        connection.execute("ROLLBACK")


def _begin_boot(
    connection: apsw.Connection,
    context: EntryContext,
    settings: LogSettings,
    *,
    lock: FileLock,
    began: float,
    told: Told | None,
) -> Opened:
    """Write the boot's row, and what recovery has to tell, in one transaction: done whole or done again."""
    noted = catalog.read(connection)
    live = connection.execute("SELECT seq, chain FROM entry ORDER BY seq DESC LIMIT 1").get
    last = live or (noted.floor.seq, noted.floor.chain)
    boots, unclean = connection.execute("SELECT count(*), ifnull(sum(clean = 0), 0) FROM boot").get
    before = connection.execute("SELECT clean, after_seq FROM boot ORDER BY number DESC LIMIT 1").get
    clean_before = before is None or bool(before[0])
    admission = Admission(context, last_seq=last[0], last_chain=last[1])
    batch = Batch()
    # A damaged log's account of its boots may be damaged as well.
    began_after = before[1] if before and not (told and told.set_aside) else 0
    closed = _close_actions(connection, admission, batch, after=began_after)
    recovery = Recovery(
        clean_before=clean_before,
        first_boot=before is None and told is None,
        replayed=last[0],
        replay_ms=0.0,
        last_seq=last[0],
        boots=boots + 1,
        unclean_boots=unclean,
        actions_closed=closed,
        damage=told.reason if told else None,
        set_aside=told.set_aside if told else None,
    )
    if not clean_before or told or closed:
        _add(admission, batch, "axon:system:message", _message(recovery))
    boot = _write_boot(connection, context, batch, after=last[0], damage=recovery.damage)
    tail = _tail(connection, settings.window_entries)
    return Opened(
        connection=connection,
        admission=admission,
        recovery=msgspec.structs.replace(
            recovery, last_seq=admission.last_seq, replay_ms=round((time.monotonic() - began) * 1000, 3)
        ),
        marks=read_marks(connection),
        first_seq=noted.first_seq,
        tail=tail,
        boot=boot,
        lock=lock,
    )


def _close_actions(connection: apsw.Connection, admission: Admission, batch: Batch, *, after: int) -> int:
    """Give each block that was started and never ended in the last run its result: nothing is repeated."""
    rows = connection.execute(
        f"SELECT seq, body FROM entry WHERE {schema.RARE} AND type IN (?, ?) AND seq > ? ORDER BY seq",
        ("cognet:action:python", "cognet:action:result", after),
    )
    open_actions: dict[str, PythonActionEntry] = {}
    for seq, body in [*catalog.carried(connection), *rows]:
        entry = decode(body, seq)
        if isinstance(entry, PythonActionEntry):
            open_actions[entry.data.action] = entry
        else:
            open_actions.pop(entry.data.action, None)  # type: ignore[union-attr]  # the query names two types
    for action, entry in open_actions.items():
        why = ActionError(kind="interrupt", message="the kernel ended before the block did; it was not repeated")
        result = ActionResult(action=action, ok=False, error=why)
        _add(admission, batch, "cognet:action:result", result, wake_id=entry.context.wake_id)
    return len(open_actions)


def _add(admission: Admission, batch: Batch, type_: str, data: msgspec.Struct, *, wake_id: str | None = None) -> None:
    row, link = admission.place(type_, admission.body(type_, data, wake_id=wake_id))
    batch.add(row, link, None)


def _message(recovery: Recovery) -> SystemMessage:
    words = [f"{recovery.replayed} entries were found."]
    if not recovery.clean_before:
        words.insert(0, "The last run ended without a shutdown.")
    if recovery.actions_closed:
        words.append(f"{recovery.actions_closed} unfinished blocks were closed, not repeated.")
    if recovery.damage:
        words.append(f"Damage: {recovery.damage}.")
    if recovery.set_aside:
        words.append(f"The damaged log is kept as {recovery.set_aside}.")
    facts = {
        "clean_before": recovery.clean_before,
        "replayed": recovery.replayed,
        "actions_closed": recovery.actions_closed,
        "damage": recovery.damage,
        "set_aside": recovery.set_aside,
    }
    return SystemMessage(type="recovery", text=" ".join(words), facts=facts)


def _write_boot(
    connection: apsw.Connection, context: EntryContext, batch: Batch, *, after: int, damage: str | None
) -> int:
    """This commit syncs: from here on, what was found is on the disk."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO boot(boot_id, started_ms, after_seq, note) VALUES (?, ?, ?, ?)",
        (context.boot_id, wall_ms(), after, damage or ""),
    )
    boot = connection.last_insert_rowid()
    if batch.columns:
        statement, size = insertion(len(batch))
        connection.execute(statement, [*batch.columns, *(None,) * (4 * size - len(batch.columns))])
    connection.execute("DELETE FROM carried")
    connection.execute("UPDATE meta SET suspect = NULL, note = '', checked = max(checked, ?)", (after,))
    connection.execute("COMMIT")
    return boot


def _tail(connection: apsw.Connection, count: int) -> list[Row]:
    rows = connection.execute("SELECT seq, type, body FROM entry ORDER BY seq DESC LIMIT ?", (count,)).fetchall()
    return [Row(*row) for row in reversed(rows)]
