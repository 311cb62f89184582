"""What the product makes of a disk after a cut: its own recovery, its own check, and every entry that came back.

``python -m plug.recovered SESSION_FOLDER`` prints one JSON object; a process of its own, since recovery is a start.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from runtime.abi.entries import decode
from runtime.abi.ids import uuid7
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.settings import LogSettings
from runtime.log.verify import verify
from runtime.media.disk import DiskRing

MEDIA_BYTES = 2_000_000_000
NEWEST_REFS = 30


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """``texts`` and ``outputs`` by seq; ``counters`` by channel, source and epoch: how often each came back."""

    ok: bool
    why: str
    last_seq: int
    set_aside: str | None
    texts: dict[int, str]
    outputs: dict[int, dict[str, Any]]
    repeated: list[str]
    marks: dict[str, int]
    media_missing: int
    again: bool


def source_key(channel: str, source: str | None, epoch: str) -> str:
    """Names one start of one source."""
    return f"{channel}|{source or ''}|{epoch}"


def recover(folder: Path) -> Recovered:
    """Open it as the kernel does, twice: what recovery did must hold at the next start."""
    found = asyncio.run(_start(folder))
    second = asyncio.run(_start(folder))
    checked = verify(folder)
    texts, outputs, counters, refs = {}, {}, dict[str, list[int]](), list[str]()
    reader = LogReader(folder)
    for row in reader.rows(after=0):
        entry = decode(row.body, row.seq)
        data = entry.data
        if row.type == "cognet:stimulus:text":
            texts[row.seq] = data.content  # type: ignore[union-attr]  # of that type
        if row.type.startswith("cognet:output:"):
            outputs[row.seq] = msgspec.to_builtins(data)
        captured = getattr(data, "captured", None)
        if captured is not None:
            source = data.source  # type: ignore[union-attr]  # a stimulus
            counters.setdefault(source_key(source.channel, source.id, captured.epoch), []).append(captured.seq)
        if ref := getattr(data, "ref", None):
            refs.append(ref)
    return Recovered(
        ok=checked.ok,
        why=checked.reason or checked.integrity,
        last_seq=checked.last_seq,
        set_aside=found[1],
        texts=texts,
        outputs=outputs,
        repeated=[key for key, seen in counters.items() if len(set(seen)) != len(seen)],
        marks=found[0],
        media_missing=_missing(folder, refs[-NEWEST_REFS:]),
        again=second[0] == found[0] and second[1] is None,
    )


async def _start(folder: Path) -> tuple[dict[str, int], str | None]:
    """One start and end: the marks that it found, and what it had to set aside."""
    media = DiskRing(folder, max_bytes=MEDIA_BYTES, max_age_s=1e9)
    settings = LogSettings(volatile_data=True)
    log = Log.open(folder, agent_id="plugged", session_id=folder.name, boot_id=uuid7(), settings=settings, media=media)
    log.start(asyncio.get_running_loop())
    marks = {source_key(mark.channel, mark.source_id, mark.epoch): mark.high for mark in log.marks}
    set_aside = log.recovery.set_aside
    await log.close(clean=True)
    return marks, set_aside


def _missing(folder: Path, refs: list[str]) -> int:
    """How many of the newest bytes an entry names aren't there; media are written before their row."""
    media = DiskRing(folder, max_bytes=MEDIA_BYTES, max_age_s=1e9)
    missing = sum(media.get(ref) is None for ref in refs)
    media.close()
    return missing


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(recover(Path(sys.argv[1]))))
