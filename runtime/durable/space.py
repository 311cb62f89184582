"""Room on the disk that is kept for what matters most: a file of that size, given up when nothing else is left."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import apsw

RESERVE_BYTES = 8 * 1024 * 1024
SPARE_BYTES = 32 * 1024 * 1024
"""So much must be free before the reserve is taken again."""


class Reserve:
    """The file ``path``; blocks."""

    def __init__(self, path: Path, size_bytes: int = RESERVE_BYTES) -> None:
        self._path = path
        self._size_bytes = size_bytes

    def take(self) -> bool:
        """Have the reserve; False when there isn't room for it and something to spare."""
        try:
            if self._path.exists() and self._path.stat().st_size >= self._size_bytes:
                return True
            if free_bytes(self._path.parent) < self._size_bytes + SPARE_BYTES:
                return False
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(file, 0, self._size_bytes)
            finally:
                os.close(file)
        except OSError:
            self.give_up()
            return False
        return True

    def give_up(self) -> None:
        """Give its room to others; what can't be removed has no room to give."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def free_bytes(folder: Path) -> int:
    """What an ordinary user may still write there."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no room."""
    return isinstance(error, apsw.FullError) or (
        isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    )
