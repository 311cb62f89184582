"""What the tests of the log share: a fast folder, a way to open the real log, and readings to put in it."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MediaRing, MemoryRing

SHM = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A session's folder, in memory where there is such a file system: the tests sync a lot."""
    base = tempfile.mkdtemp(prefix="axon-log-", dir=SHM if SHM.is_dir() else None)
    (Path(base) / "session").mkdir()
    yield Path(base) / "session"
    shutil.rmtree(base)


@pytest.fixture
def open_log() -> Callable[..., Log]:
    """Open the product's own log; keyword arguments are its settings."""

    def opening(folder: Path, *, boot_id: str = "boot", media: MediaRing | None = None, **settings: Any) -> Log:
        return Log.open(
            folder,
            agent_id="rover",
            session_id="session",
            boot_id=boot_id,
            settings=LogSettings(volatile_data=True, **settings),
            media=media or MemoryRing(max_bytes=1_000_000),
        )

    return opening


@pytest.fixture
def reading() -> Callable[..., dict[str, Any]]:
    """The plain payload of a field stimulus."""

    def made(value: float, channel: str = "host.cpu") -> dict[str, Any]:
        return {"source": {"channel": channel}, "reading": {"value": value}}

    return made
