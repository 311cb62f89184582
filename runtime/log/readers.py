"""Connections that read the live log inside the kernel, and the way to have none of them open for a moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from runtime.abi.errors import StorageFailed
from runtime.durable.database import open_reader


class Readers:
    """Lends a connection for one short read at a time; ``away`` closes them all while the writer reopens."""

    def __init__(self, path: Path, *, vfs: str | None = None) -> None:
        self._path = path
        self._vfs = vfs
        self._idle: list[apsw.Connection] = []
        self._lent = 0
        self._closed = False
        self._changed = threading.Condition()

    @contextmanager
    def lend(self) -> Iterator[apsw.Connection]:
        """A connection for a read; raises ``StorageFailed`` when the log is closed or stays unopened for long."""
        connection = self._borrow()
        broken = True
        try:
            yield connection
            broken = False
        finally:
            with self._changed:
                self._lent -= 1
                if broken or self._closed:
                    connection.close(True)
                else:
                    self._idle.append(connection)
                self._changed.notify_all()

    def _borrow(self) -> apsw.Connection:
        with self._changed:
            if not self._changed.wait_for(lambda: not self._closed, timeout=5):
                raise StorageFailed("the log isn't open for reading", path=str(self._path))
            connection = self._idle.pop() if self._idle else open_reader(self._path, vfs=self._vfs)
            self._lent += 1
            return connection

    def close(self, *, wait_s: float = 5.0) -> bool:
        """Lend no more, close all; False when one stayed lent for longer than ``wait_s``."""
        with self._changed:
            self._closed = True
            while self._idle:
                self._idle.pop().close(True)
            return self._changed.wait_for(lambda: not self._lent, timeout=wait_s)

    def open(self) -> None:
        """Lend again."""
        with self._changed:
            self._closed = False
            self._changed.notify_all()
