"""Reading and checking a log from outside."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from runtime.abi.errors import LogDamaged, SessionNotFound
from runtime.log import reader
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.verify import verify

FIELD = "cognet:stimulus:field"


@pytest.fixture
async def log(folder: Path, open_log: Callable[..., Log], reading: Callable[..., Any]) -> AsyncIterator[Log]:
    opened = open_log(folder)
    opened.start(asyncio.get_running_loop())
    for value in range(50):
        opened.admit(FIELD, reading(value))
        opened.admit("cognet:output:text", {"channel": "say", "content": "a", "chunk": {"of": f"g{value // 2}"}})
    await asyncio.wait_for(opened.durable(100), 30)
    yield opened
    await opened.close(clean=True)


async def test_rows_while_a_kernel_writes(log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ROWS_AT_ONCE", 7)
    found = LogReader(folder)
    assert [row.seq for row in found.rows()] == list(range(1, 101))
    assert [row.seq for row in found.rows(after=90, upto=95)] == [91, 92, 93, 94, 95]
    assert [row.seq for row in found.rows(types=[FIELD], limit=3)] == [1, 3, 5]
    assert [row.seq for row in found.rows(after=10, types=["cognet:output:*"], limit=2)] == [12, 14]
    assert found.last_seq == 100


async def test_an_open_reader_hinders_neither_commit_nor_checkpoint(
    log: Log, folder: Path, reading: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "ROWS_AT_ONCE", 7)
    rows = LogReader(folder).rows()
    assert next(rows).seq == 1
    connection = apsw.Connection(str(folder / "log.db"))
    pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    connection.close()
    assert pages == copied
    assert len(list(rows)) == 99


async def test_verify_tells_what_it_found(log: Log, folder: Path) -> None:
    log.admit("cognet:output:text", {"channel": "say", "content": "b", "chunk": {"of": "g0", "final": True}})
    await asyncio.wait_for(log.durable(101), 30)
    found = await asyncio.to_thread(verify, folder)
    assert found.ok
    assert (found.entries, found.last_seq, found.seq_monotonic, found.integrity) == (101, 101, True, "ok")
    assert found.truncated_chunks == 24
    assert (found.boots, found.unclean_boots) == (1, 0)


async def test_verify_names_the_first_bad_entry(log: Log, folder: Path) -> None:
    connection = apsw.Connection(str(folder / "log.db"))
    connection.execute(
        "UPDATE entry SET body = CAST(replace(body, '\"value\":20', '\"value\":21') AS BLOB) WHERE seq = 41"
    )
    connection.close()
    found = await asyncio.to_thread(verify, folder)
    assert not found.ok
    assert found.first_bad_seq == 41
    assert "41" in (found.reason or "")
    with pytest.raises(LogDamaged):
        list(LogReader(folder).rows())


async def test_verify_finds_a_hole(log: Log, folder: Path) -> None:
    connection = apsw.Connection(str(folder / "log.db"))
    connection.execute("DELETE FROM entry WHERE seq = 60")
    connection.close()
    found = await asyncio.to_thread(verify, folder)
    assert (found.ok, found.first_bad_seq) == (False, 60)


async def test_verify_finds_a_type_that_isn_t_the_body_s(log: Log, folder: Path) -> None:
    connection = apsw.Connection(str(folder / "log.db"))
    connection.execute("UPDATE entry SET type = 'axon:interrupt' WHERE seq = 5")
    connection.close()
    assert (await asyncio.to_thread(verify, folder)).first_bad_seq == 5


def test_a_folder_without_a_log(folder: Path) -> None:
    with pytest.raises(SessionNotFound):
        LogReader(folder)
    with pytest.raises(SessionNotFound):
        verify(folder)
