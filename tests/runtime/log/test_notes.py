"""What a log notes beside its entries may be damaged like everything else: a start finds that out and goes on."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from runtime.log.log import Log
from runtime.log.reader import LogReader


@pytest.fixture
async def begun(folder: Path, open_log: Callable[..., Log]) -> Path:
    """A session whose kernel ended while a block ran."""
    log = open_log(folder)
    log.start(asyncio.get_running_loop())
    log.admit("cognet:action:python", {"action": "a1", "code": "move()"})
    await asyncio.wait_for(log.durable(1), 30)
    await log.close(clean=False)
    return folder


def change(folder: Path, statement: str, *bindings: object) -> None:
    connection = apsw.Connection(str(folder / "log.db"))
    connection.execute(statement, bindings)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()


def results(folder: Path) -> list[str]:
    rows = LogReader(folder).rows(types=["cognet:action:result"])
    return [json.loads(row.body)["data"]["action"] for row in rows]


async def test_a_damaged_note_of_an_unfinished_block_is_damage(begun: Path, open_log: Callable[..., Log]) -> None:
    change(begun, "INSERT INTO carried(action, seq, body, sum) VALUES ('a0', 1, x'00', 1)")
    log = open_log(begun)
    assert "unfinished block" in (log.recovery.damage or "")
    assert log.recovery.set_aside
    await log.close(clean=True)
    assert results(begun) == ["a1"]


async def test_a_damaged_log_isnt_believed_about_its_boots(begun: Path, open_log: Callable[..., Log]) -> None:
    change(begun, "UPDATE boot SET after_seq = 1000000")
    change(begun, "INSERT INTO carried(action, seq, body, sum) VALUES ('a0', 1, x'00', 1)")
    await open_log(begun).close(clean=True)
    assert results(begun) == ["a1"]


async def test_what_a_cut_left_of_a_file_that_was_being_written_goes(begun: Path, open_log: Callable[..., Log]) -> None:
    (begun / ".log.db.abc.tmp").write_bytes(b"half")
    await open_log(begun).close(clean=True)
    assert not await asyncio.to_thread(lambda: list(begun.glob(".*")))
