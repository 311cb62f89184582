"""Layer 1: a real writer process is killed, again and again, and nothing it acknowledged is missing."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.verify import verify

WRITER = """
import asyncio, sys
from pathlib import Path
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

async def main() -> None:
    log = Log.open(
        Path(sys.argv[1]), agent_id="rover", session_id="session", boot_id=sys.argv[2],
        settings=LogSettings(volatile_data=True), media=MemoryRing(max_bytes=1000),
    )
    log.on_durable = lambda rows: sys.stdout.write(f"{rows[-1].seq}\\n") and sys.stdout.flush()
    log.start(asyncio.get_running_loop())
    while True:
        for value in range(1 + log.last_seq % 7):
            log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": log.last_seq}})
        await log.durable(log.last_seq)

asyncio.run(main())
"""
KILLS = 8


async def run_and_kill(folder: Path, boot: int) -> int:
    """Start a writer, kill it after some acknowledgements, return the last it gave."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(folder), f"boot-{boot}", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(20 + 7 * boot):
        await asyncio.wait_for(process.stdout.readline(), 30)
    os.kill(process.pid, signal.SIGKILL)
    rest = await asyncio.wait_for(process.stdout.read(), 30)
    await process.wait()
    whole = [int(line) for line in rest.split(b"\n")[:-1]]
    return whole[-1] if whole else 0


async def test_sigkill_at_any_moment_loses_nothing_acknowledged(folder: Path, open_log: Callable[..., Log]) -> None:
    for boot in range(KILLS):
        acknowledged = await run_and_kill(folder, boot)
        assert LogReader(folder).last_seq >= acknowledged
        found = verify(folder)
        assert found.ok, found
        assert found.boots == boot + 1
    log = open_log(folder)
    assert log.recovery.damage is None
    assert log.recovery.unclean_boots == KILLS
    await log.close(clean=True)
    assert verify(folder).unclean_boots == KILLS
