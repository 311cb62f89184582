"""Locks on files between processes; they go with their process, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class FileLock:
    """An advisory lock (flock) on a file of its own; held by one object until ``release``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self, *, shared: bool = False, wait_s: float = 0.0) -> bool:
        """Take the lock, alone or shared; False when others hold it for longer than ``wait_s``."""
        file = self._open(shared=shared)
        kind = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, kind)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(file)
                    return False
                time.sleep(0.005)
            else:
                self._file = file
                return True

    def release(self) -> None:
        """Give it back; nothing happens when it isn't held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, *, shared: bool) -> int:
        """A reader without the right to write here can still lock a file that exists."""
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except PermissionError:
            if not shared:
                raise
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
