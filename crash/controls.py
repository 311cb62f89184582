"""Worlds in which acknowledged things must be lost: a check that can't see that sees nothing."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from crash.recording import Recording
from crash.run import World
from crash.scenarios import failing as failing_scenario
from crash.scenarios.again import SYNCED_ONLY, recorded_boot, some_state
from crash.scenarios.entries import entries, media
from crash.scenarios.failing import failing
from crash.scenarios.files import files
from crash.scenarios.months import months
from runtime.durable import database
from runtime.durable import files as durable_files
from runtime.kernel import stop, store
from runtime.log import recovery as log_recovery
from runtime.log import storage
from runtime.log.pending import Batch
from runtime.log.storage import Storage
from runtime.log.writer import Writer
from runtime.media.disk import DiskRing


@contextmanager
def _with(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """The product with something else in a place of it."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _pragma(instead: str) -> tuple[Any, str, Any]:
    """Another ``synchronous``."""
    settings = tuple(each.replace("synchronous=FULL", instead) for each in database.WRITER_PRAGMAS)
    return database, "WRITER_PRAGMAS", settings


class _Unsynced:
    """``os`` without the syncs of files, or of folders."""

    def __init__(self, *, folders: bool) -> None:
        self._folders = folders

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode) is not self._folders:
            os.fsync(handle)

    def fdatasync(self, handle: int) -> None:
        self.fsync(handle)


def _in_place(path: Path, data: bytes) -> None:
    """What most programs do."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(handle, data)
    os.fsync(handle)
    os.close(handle)
    durable_files.sync_folder(path.parent)


def _acknowledge_first(real: Callable[..., None]) -> Callable[..., None]:
    def attempt(self: Writer, batch: Batch, telemetry: bool) -> None:  # noqa: FBT001 - as the real one
        if batch.columns:
            self.settled(batch.last_seq, 0)
        real(self, batch, telemetry)

    return attempt


def _late_flush(real: Callable[..., None]) -> Callable[..., None]:
    """What was staged is written one flush after the rows that name it."""

    def flush(self: Any) -> None:
        now = dict(self._staged)
        late = getattr(self, "late", {})
        self._staged, self.late = late, {ref: data for ref, data in now.items() if ref not in late}
        real(self)
        self._staged = {**self.late}

    return flush


def _checkpoint_at_once(real: Callable[..., Any]) -> Callable[..., Any]:
    def reopen(self: Storage) -> Any:
        found = real(self)
        self._open_connection().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return found

    return reopen


def _boot_after_a_cut(root: Path, rng: random.Random) -> Recording:
    """The boot on what was synced and nothing else."""
    recording = entries(root, rng)
    return recorded_boot(root, some_state(recording, rng, kinds=SYNCED_ONLY), recording, rng)


def _not_evicted() -> tuple[Any, str, Any]:
    return failing_scenario.FailingTape, "evict", lambda _tape, _path: None


CONTROLS: dict[str, World] = {
    "synchronous=OFF": World(record=entries, changed=lambda: _with(_pragma("synchronous=OFF"))),
    "synchronous=NORMAL": World(record=entries, changed=lambda: _with(_pragma("synchronous=NORMAL"))),
    "a disk that ignores syncs": World(record=entries, honest=False),
    "small files on a disk that ignores syncs": World(record=files, honest=False),
    "acknowledged before the sync": World(
        record=entries, changed=lambda: _with((Writer, "_attempt", _acknowledge_first(Writer._attempt)))
    ),
    "psow=1 and a block of noise": World(
        record=entries, changed=lambda: _with((database, "URI_OPTIONS", "psow=1")), kinds=("garbage",)
    ),
    "a boot that writes behind the last commit": World(
        record=_boot_after_a_cut,
        changed=lambda: _with((log_recovery, "copy_back", lambda _connection: None)),
        kinds=("garbage",),
    ),
    "rows before their media": World(
        record=media, changed=lambda: _with((DiskRing, "flush", _late_flush(DiskRing.flush)))
    ),
    "a segment noted before it is synced": World(
        record=months, changed=lambda: _with((durable_files, "os", _Unsynced(folders=False)))
    ),
    "opened again without eviction": World(
        record=failing, changed=lambda: _with(_not_evicted(), (storage.Storage, "checkpoint", lambda *_, **__: None))
    ),
    "a checkpoint instead of eviction": World(
        record=failing,
        changed=lambda: _with(_not_evicted(), (storage.Storage, "reopen", _checkpoint_at_once(Storage.reopen))),
    ),
    "renamed without a sync of the file": World(
        record=files, changed=lambda: _with((durable_files, "os", _Unsynced(folders=False)))
    ),
    "renamed without a sync of the folder": World(
        record=files, changed=lambda: _with((durable_files, "os", _Unsynced(folders=True)))
    ),
    "written in place": World(
        record=files,
        changed=lambda: _with((stop, "write_durable", _in_place), (store, "write_durable", _in_place)),
    ),
}
