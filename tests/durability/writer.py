"""The product's own log in a process of its own: ``python writer.py FOLDER BOOT`` admits for ever, and prints what it
may promise: a line with ``seq`` and digest of each entry that is durable."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path

from runtime.abi.errors import StorageFailed
from runtime.abi.link import Row
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.disk import DiskRing


def digest(row: Row) -> str:
    return hashlib.sha256(row.body).hexdigest()[:16]


async def write(folder: Path, boot: str) -> None:
    media = DiskRing(folder, max_bytes=2_000_000)
    settings = LogSettings(volatile_data=True)
    log = Log.open(folder, agent_id="a", session_id="s", boot_id=boot, settings=settings, media=media)
    log.on_durable = lambda rows: print("".join(f"{row.seq} {digest(row)}\n" for row in rows), end="", flush=True)
    log.start(asyncio.get_running_loop())
    while True:
        for number in range(5):
            frame = {
                "ref": media.stage(f"{boot} {log.last_seq}".encode() * 50),
                "kind": "image",
                "width": 1,
                "height": 1,
            }
            log.admit("cognet:stimulus:visual", {"source": {"channel": "camera"}, **frame})
            words = {"source": {"channel": "person"}, "content": "x" * (number * 400)}
            row = log.admit("cognet:stimulus:text", words)
        try:
            await log.durable(row.seq)
        except StorageFailed:
            await asyncio.sleep(0.02)  # it resumes by itself


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2]))
