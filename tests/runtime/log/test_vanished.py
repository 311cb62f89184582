"""A log that is gone is never an empty start in silence, and what its write-ahead log still holds comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

CODE = """
import asyncio, sys, time
from pathlib import Path
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing
from runtime.abi.payloads import TextOutput

async def main():
    log = Log.open(Path(sys.argv[1]), agent_id="a", session_id="s", boot_id="b",
                   settings=LogSettings(volatile_data=True), media=MemoryRing(max_bytes=1000000))
    log.start(asyncio.get_running_loop())
    for number in range(40):
        await log.durable(log.admit("cognet:output:text", TextOutput(channel="c", content=str(number))).seq)
    print(log.last_seq, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A session whose kernel was killed: all of it lies in the write-ahead log."""
    folder = tmp_path / "session"
    with subprocess.Popen([sys.executable, "-c", CODE, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert int(process.stdout.readline()) == 40
        os.kill(process.pid, signal.SIGKILL)
    return folder


def reopen(folder: Path) -> Log:
    async def once() -> Log:
        log = Log.open(
            folder,
            agent_id="a",
            session_id="s",
            boot_id="c",
            settings=LogSettings(volatile_data=True),
            media=MemoryRing(max_bytes=1_000_000),
        )
        log.start(asyncio.get_running_loop())
        await log.close(clean=True)
        return log

    return asyncio.run(once())


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_entries_in_the_write_ahead_log_come_back_without_the_file(killed: Path, how: str) -> None:
    path = killed / "log.db"
    path.unlink() if how == "removed" else os.truncate(path, 0)
    log = reopen(killed)
    assert log.recovery.damage is not None
    assert log.recovery.set_aside is not None
    rows = list(LogReader(killed).rows())
    assert sum(row.type == "cognet:output:text" for row in rows) == 40
    assert any(row.type == "axon:system:message" for row in rows)


def test_a_log_that_is_wholly_gone_is_told(killed: Path) -> None:
    for path in killed.glob("log.db*"):
        path.unlink()
    log = reopen(killed)
    assert log.recovery.damage is not None
    assert not log.recovery.first_boot
    assert [row.type for row in LogReader(killed).rows()] == ["axon:system:message"]


def test_a_write_ahead_log_that_is_gone_is_told(killed: Path) -> None:
    (killed / "log.db-wal").unlink()
    assert reopen(killed).recovery.damage is not None


def test_a_new_session_is_no_damage(tmp_path: Path) -> None:
    log = reopen(tmp_path / "new")
    assert log.recovery.damage is None
    assert log.recovery.first_boot
