"""SQLite databases that hold what was acknowledged: how they are opened, and why each setting is as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw

from runtime.abi.errors import StorageUnsupported

URI_OPTIONS = "psow=0"
"""A cut may turn the whole block that was being written into garbage; ``psow=0`` gives each commit its own."""

WRITER_PRAGMAS = (
    "page_size=4096",
    "journal_mode=WAL",
    "synchronous=FULL",
    "mmap_size=0",  # an I/O error must be an error code, not a signal
    "wal_autocheckpoint=0",
    "cell_size_check=ON",
    "trusted_schema=OFF",
    "temp_store=MEMORY",
)
READER_PRAGMAS = ("mmap_size=0", "cell_size_check=ON", "trusted_schema=OFF", "query_only=ON", "temp_store=MEMORY")
BUSY_MS = 2000


def evict(path: Path) -> None:
    """Drop the page cache of a database and its write-ahead log, so that what is read next is what the disk has.

    After a failed sync the cache shows bytes that never got there. Nobody in this process may have the database open.
    """
    for name in (path, wal_path(path)):
        try:
            file = os.open(name, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def open_writer(path: Path, *, vfs: str | None = None, create: bool = True) -> apsw.Connection:
    """Evict, then open for writing, making the file if ``create``. Raises ``apsw.Error`` or ``OSError``."""
    evict(path)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = apsw.Connection(_uri(path), flags=flags, vfs=vfs)
    try:
        _prepare(connection, WRITER_PRAGMAS)
        if connection.pragma("journal_mode") != "wal":
            raise StorageUnsupported(f"{path.parent} doesn't carry SQLite's write-ahead log", folder=str(path.parent))
    except BaseException:
        connection.close(True)
        raise
    return connection


def open_reader(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    """Open an existing database for reading only. Raises ``apsw.Error``."""
    connection = apsw.Connection(_uri(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs=vfs)
    try:
        _prepare(connection, READER_PRAGMAS)
    except BaseException:
        connection.close(True)
        raise
    return connection


def copy_back(connection: apsw.Connection) -> None:
    """Move what an ended process left in the write-ahead log into the database, so that the next commit begins anew.

    SQLite would write on right behind the last commit that holds, into the very block in which that one ends: the
    repeated frame that ``psow=0`` puts between them isn't synced to its end, so a cut may have taken it. A second cut,
    during that write, could turn the block to garbage and take what was acknowledged. And what lies behind that commit
    and doesn't hold would be there still, to be taken for a loss at the next start.

    Call it before anything is written on a connection that was opened after an eviction; nothing happens while another
    program holds a transaction. Raises ``apsw.Error``.
    """
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return


DAMAGE = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.SQLError,
    apsw.FormatError,
    apsw.MismatchError,
    UnicodeDecodeError,
)


def is_damage(error: BaseException) -> bool:
    """Whether what SQLite says is that a file's content is wrong, or ends too early, and not that a disk fails."""
    ends_early = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHORT_READ
    return ends_early or isinstance(error, DAMAGE)


@contextmanager
def one_view(connection: apsw.Connection) -> Iterator[None]:
    """All that is read inside is of one moment; keep it short, since the write-ahead log can't shrink meanwhile."""
    with connection:
        yield


def wal_path(path: Path) -> Path:
    """The write-ahead log beside a database."""
    return path.with_name(path.name + "-wal")


def shm_path(path: Path) -> Path:
    """The write-ahead log's index beside a database."""
    return path.with_name(path.name + "-shm")


def _prepare(connection: apsw.Connection, pragmas: tuple[str, ...]) -> None:
    """A close never checkpoints: after an error that would write what nobody knows to be good."""
    connection.set_busy_timeout(BUSY_MS)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}?{URI_OPTIONS}"
