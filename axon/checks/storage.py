"""Where the log lies: the SQLite library, the file system, and the settings as a database there really has them."""

from __future__ import annotations

import ctypes
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from axon.checks.check import Check, held, not_held, warning
from capsule.errors import AxonError
from runtime.durable.database import open_writer
from runtime.durable.gates import check_file_system, check_sqlite

WANTED = {
    "journal_mode": "wal",
    "synchronous": 2,
    "page_size": 4096,
    "mmap_size": 0,
    "wal_autocheckpoint": 0,
    "cell_size_check": 1,
    "trusted_schema": 0,
}
"""What the log needs, in the values that SQLite answers with."""
_COMMITS = 15


def storage(folder: Path) -> Iterator[Check]:
    """Everything about the place where data/ is or will be."""
    yield sqlite(apsw.sqlite_lib_version())
    yield file_system(folder)
    yield from database(folder)


def sqlite(version: str) -> Check:
    """Earlier versions can corrupt a log."""
    try:
        check_sqlite(version)
    except AxonError as error:
        return not_held("sqlite", error.message, fix=error.hint)
    return held("sqlite", f"{version}, from apsw", essential=True)


def file_system(folder: Path) -> Check:
    """Some forget at a power cut."""
    try:
        kind = check_file_system(folder)
    except AxonError as error:
        return not_held("file system", error.message, fix=error.hint)
    if kind == "unknown":
        return warning("file system", f"unknown for {folder}", fix="Use a local disk with ext4, f2fs, btrfs or xfs.")
    return held("file system", f"{kind} for {folder}", essential=True)


def database(folder: Path) -> Iterator[Check]:
    """Open a database there as the log will be opened, look at its settings, and time a few commits."""
    fix = "Give this user a folder it can write, with space left."
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".axon-doctor-") as place:
            connection = open_writer(Path(place) / "probe.db")
            try:
                found, took_ms = settings(connection), commit_ms(connection)
            finally:
                connection.close(True)
    except (OSError, apsw.Error) as error:
        yield not_held("log settings", f"no database can be written in {folder}: {error}", fix=fix)
        return
    yield compare(found)
    yield held("commit", f"{took_ms:.2g} ms at the median, alone, on this disk")


def settings(connection: apsw.Connection) -> dict[str, int | str]:
    """The PRAGMAs in force, and ``psow``: whether SQLite trusts a power cut to spare what lies beside a write."""
    found: dict[str, int | str] = {name: connection.pragma(name) for name in WANTED}
    psow = ctypes.c_int(-1)  # -1 asks
    connection.file_control("main", apsw.SQLITE_FCNTL_POWERSAFE_OVERWRITE, ctypes.addressof(psow))
    return {**found, "psow": psow.value}


def compare(found: dict[str, int | str]) -> Check:
    """Whether each is as the log needs it."""
    wrong = {name: found.get(name) for name, value in {**WANTED, "psow": 0}.items() if found.get(name) != value}
    if wrong:
        detail = ", ".join(f"{name}={value}" for name, value in wrong.items())
        return not_held("log settings", f"not as the log needs them: {detail}", fix="Reinstall the pinned apsw wheel.")
    words = "psow=0, WAL, synchronous=FULL, page_size=4096, mmap_size=0, no automatic checkpoint, cell_size_check"
    return held("log settings", words, essential=True)


def commit_ms(connection: apsw.Connection) -> float:
    """The median of a few commits of one small row."""
    connection.execute("CREATE TABLE probe (body BLOB)")
    took: list[float] = []
    for _ in range(_COMMITS):
        began = time.perf_counter()
        connection.execute("INSERT INTO probe VALUES (zeroblob(400))")
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took)
