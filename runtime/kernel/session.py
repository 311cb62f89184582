"""Which session a start continues, and the lock that keeps a second kernel away."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

from runtime.abi.errors import SessionLocked, SessionNotFound
from runtime.abi.ids import uuid7
from runtime.durable.files import make_folder, write_durable

LAST = "session"
LOCK = "lock"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Session:
    """One session of an agent, held by this process until ``release`` or its end."""

    def __init__(self, data: Path, session_id: str, lock: int) -> None:
        self.id = session_id
        self.folder = data / "sessions" / session_id
        self._lock = lock

    @classmethod
    def take(cls, data: Path, asked: str | None) -> Session:
        """Resume the last session, that of the id ``asked``, or a ``new`` one; blocking.

        Raises ``SessionLocked`` while another kernel runs this agent, ``SessionNotFound`` for an unknown id.
        """
        make_folder(data)
        lock = _lock(data)
        try:
            session_id = _choose(data, asked)
            make_folder(data / "sessions" / session_id)
            if _last(data) != session_id:
                write_durable(data / LAST, session_id.encode())
        except BaseException:
            os.close(lock)
            raise
        return cls(data, session_id, lock)

    def release(self) -> None:
        """Let another kernel have it."""
        os.close(self._lock)


def _lock(data: Path) -> int:
    """Hold the agent: its sockets, broker and log belong to one kernel."""
    fd = os.open(data / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.read(fd, 32).decode(errors="replace").strip()
        os.close(fd)
        raise SessionLocked(f"another kernel (pid {owner or 'unknown'}) is running this agent", pid=owner) from error
    os.ftruncate(fd, 0)
    os.write(fd, str(os.getpid()).encode())
    return fd


def _last(data: Path) -> str | None:
    try:
        return (data / LAST).read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None  # absent or damaged: the newest session is the last one


def _choose(data: Path, asked: str | None) -> str:
    if asked == "new":
        return uuid7()
    if asked is None:
        last = _last(data)
        return last if last and _exists(data, last) else _newest(data) or uuid7()
    if not _exists(data, asked):
        known = sorted(path.name for path in (data / "sessions").glob("*"))
        raise SessionNotFound(f"there is no session {asked!r}", hint=f"known: {', '.join(known) or 'none'}")
    return asked


def _exists(data: Path, name: str) -> bool:
    return re.fullmatch(r"[0-9A-Za-z-]+", name) is not None and (data / "sessions" / name).is_dir()


def _newest(data: Path) -> str | None:
    """Session ids are time-ordered, so the last by name is the newest: for a lost ``session`` file."""
    names = (path.name for path in (data / "sessions").glob("*") if path.is_dir())
    return max((name for name in names if UUID.fullmatch(name)), default=None)
