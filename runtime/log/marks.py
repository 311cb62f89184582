"""Marks on the disk: which stimuli of each source are in the log, written with the entries they stand for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import apsw

from runtime.abi.errors import LogDamaged
from runtime.log.settings import Mark

RETIRED_MARKS = 8
"""So many epochs that are over are remembered of each source."""


def insert_mark(connection: apsw.Connection, mark: Mark, *, seq: int) -> None:
    """Write a mark that came with entry ``seq``, inside its transaction."""
    connection.execute(
        "INSERT OR REPLACE INTO mark(channel, source_id, epoch, high, retired, seq, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (mark.channel, mark.source_id, mark.epoch, mark.high, int(mark.retired), seq, _sum(mark)),
    )


def retire_others(connection: apsw.Connection, mark: Mark) -> None:
    """A new epoch took over: the others of that source are over, and only the last of them are remembered."""
    connection.execute(
        "UPDATE mark SET retired = 1 WHERE channel = ? AND source_id = ? AND epoch <> ? AND retired = 0",
        (mark.channel, mark.source_id, mark.epoch),
    )
    connection.execute(
        "DELETE FROM mark WHERE channel = ?1 AND source_id = ?2 AND epoch IN (SELECT epoch FROM mark"
        " WHERE channel = ?1 AND source_id = ?2 AND epoch <> ?3 ORDER BY seq DESC LIMIT -1 OFFSET ?4)",
        (mark.channel, mark.source_id, mark.epoch, RETIRED_MARKS),
    )


def read_marks(connection: apsw.Connection) -> list[Mark]:
    """Every mark, the newest last. Raises ``LogDamaged`` for one that isn't what was written."""
    return [mark for mark, _ in placed_marks(connection)]


def placed_marks(connection: apsw.Connection) -> Iterator[tuple[Mark, int]]:
    """The same one by one, each with the entry it came with."""
    rows: Any = connection.execute("SELECT channel, source_id, epoch, high, retired, sum, seq FROM mark ORDER BY seq")
    for channel, source_id, epoch, high, retired, total, seq in rows:
        mark = Mark(channel=channel, source_id=source_id, epoch=epoch, high=high, retired=bool(retired))
        if _sum(mark) != total:
            raise LogDamaged(f"the mark of {channel!r} isn't what was written", seq=seq)
        yield mark, seq


def live_epochs(connection: apsw.Connection) -> dict[tuple[str, str], str]:
    """The epoch that isn't over, by channel and source."""
    rows: Any = connection.execute("SELECT channel, source_id, epoch FROM mark WHERE retired = 0")
    return {(channel, source_id): epoch for channel, source_id, epoch in rows}


def _sum(mark: Mark) -> int:
    return zlib.crc32(f"{mark.channel}\n{mark.source_id}\n{mark.epoch}\n{mark.high}".encode())
