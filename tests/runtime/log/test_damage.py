"""A byte that isn't what was written: every entry is unchanged, or the damage is named and what came before is kept."""

import asyncio
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.abi.errors import LogDamaged
from runtime.abi.link import Row
from runtime.abi.telemetry import Fact, TelemetryEvent
from runtime.durable.database import open_writer
from runtime.log import inspection, narration, storage
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.settings import Mark
from runtime.log.verify import verify

ENTRIES = 1000
LONG = 6000
"""Longer than a page: such entries lie in overflow pages."""


async def build(log: Log) -> list[Row]:
    log.start(asyncio.get_running_loop())
    rows = []
    for number in range(1, ENTRIES + 1):
        if number % 100 == 0:
            data: Any = {"source": {"channel": "words"}, "content": "w" * LONG}
            rows.append(log.admit("cognet:stimulus:text", data))
            continue
        captured = {"epoch": "e", "ms": 1, "seq": number}
        data = {"source": {"channel": "host.cpu"}, "reading": {"value": number}, "captured": captured}
        mark = Mark(channel="host.cpu", source_id="", epoch="e", high=number)
        rows.append(log.admit("cognet:stimulus:field", data, mark=mark))
        if number % 17 == 0:
            await asyncio.wait_for(log.durable(number), 30)
    await asyncio.wait_for(log.durable(ENTRIES), 30)
    return rows


@pytest.fixture
async def clean(folder: Path, open_log: Callable[..., Log]) -> list[Row]:
    """A log that was closed: all in the main file."""
    log = open_log(folder)
    rows = await build(log)
    await log.close(clean=True)
    return rows


@pytest.fixture
async def unclean(folder: Path, open_log: Callable[..., Log]) -> list[Row]:
    """A log whose kernel ended without a word: its end is in the write-ahead log."""
    log = open_log(folder)
    rows = await build(log)
    await log.close(clean=False)
    return rows


def copy_with_flip(folder: Path, name: str, offset: int, bit: int) -> Path:
    copy = folder.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("log.reserve"))
    flip(copy / name, offset, bit)
    return copy


def flip(file: Path, offset: int, bit: int = 0) -> None:
    data = bytearray(file.read_bytes())
    data[offset] ^= 1 << bit
    file.write_bytes(data)


async def opened_rows(folder: Path, open_log: Callable[..., Log]) -> tuple[list[Row], str | None, int]:
    """The entries that were found, what was said of damage, and how many were there before this boot."""
    log = open_log(folder, boot_id="after")
    await log.close(clean=True)
    return list(LogReader(folder).rows()), log.recovery.damage, log.recovery.replayed


async def check_flip(copy: Path, rows: list[Row], open_log: Callable[..., Log], where: str) -> int:
    found, damage, replayed = await opened_rows(copy, open_log)
    assert found[:replayed] == rows[:replayed], where
    if replayed < len(rows):
        assert damage, where
        assert any(b'"recovery"' in row.body for row in found[replayed:]), where
    assert verify(copy).ok, where
    return replayed


async def test_a_flipped_byte_in_a_closed_log(folder: Path, open_log: Callable[..., Log], clean: list[Row]) -> None:
    rng = random.Random(3)
    size = (folder / "log.db").stat().st_size
    for _ in range(30):
        offset, bit = rng.randrange(size), rng.randrange(8)
        copy = copy_with_flip(folder, "log.db", offset, bit)
        await check_flip(copy, clean, open_log, f"{offset}.{bit}")


async def test_a_flipped_byte_in_a_write_ahead_log(
    folder: Path, open_log: Callable[..., Log], unclean: list[Row]
) -> None:
    rng = random.Random(4)
    size = (folder / "log.db-wal").stat().st_size
    for _ in range(30):
        offset, bit = rng.randrange(size), rng.randrange(8)
        copy = copy_with_flip(folder, "log.db-wal", offset, bit)
        await check_flip(copy, unclean, open_log, f"{offset}.{bit}")


async def test_every_byte_of_the_headers(folder: Path, open_log: Callable[..., Log], clean: list[Row]) -> None:
    for offset in range(0, 100, 7):
        copy = copy_with_flip(folder, "log.db", offset, offset % 8)
        assert await check_flip(copy, clean, open_log, str(offset)) == ENTRIES


async def test_an_index_page_costs_no_entry(folder: Path, open_log: Callable[..., Log], clean: list[Row]) -> None:
    data = (folder / "log.db").read_bytes()
    interior = [at for at in range(4096, len(data), 4096) if data[at] == 0x05]
    assert interior
    flip(folder / "log.db", interior[0] + 8)
    found, damage, replayed = await opened_rows(folder, open_log)
    assert replayed == ENTRIES
    assert damage
    assert found[:replayed] == clean


async def test_the_damaged_log_is_set_aside_whole_and_named(
    folder: Path, open_log: Callable[..., Log], clean: list[Row]
) -> None:
    at = (folder / "log.db").read_bytes().index(clean[449].body)
    flip(folder / "log.db", at + 30)
    damaged = (folder / "log.db").read_bytes()
    log = open_log(folder, boot_id="after")
    assert log.recovery.set_aside == "log.db.damaged-1"
    assert "450" in (log.recovery.damage or "")
    assert log.recovery.replayed == 449
    assert (folder / "log.db.damaged-1").read_bytes() == damaged
    await log.close(clean=True)


async def test_marks_go_back_to_what_was_kept(folder: Path, open_log: Callable[..., Log], clean: list[Row]) -> None:
    at = (folder / "log.db").read_bytes().index(clean[449].body)
    flip(folder / "log.db", at + 30)
    log = open_log(folder, boot_id="after")
    assert log.marks == [Mark(channel="host.cpu", source_id="", epoch="e", high=449)]
    await log.close(clean=True)


async def test_a_large_log_is_checked_page_by_page_as_it_is_read(
    folder: Path, open_log: Callable[..., Log], clean: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "SMALL_BYTES", 0)
    at = (folder / "log.db").read_bytes().index(clean[309].body)
    flip(folder / "log.db", at + 30)
    log = open_log(folder, boot_id="after", window_entries=10)
    assert log.recovery.damage is None
    log.start(asyncio.get_running_loop())
    before = await asyncio.to_thread(lambda: log.page(after=0, upto=10_000))
    assert before.count == 256
    with pytest.raises(LogDamaged) as raised:
        await asyncio.to_thread(lambda: log.page(after=256, upto=10_000))
    assert raised.value.facts["seq"] == 310
    log.admit("axon:interrupt", {"by": "person"})
    await asyncio.wait_for(log.durable(log.last_seq), 30)
    await log.close(clean=True)
    again = open_log(folder, boot_id="later")
    assert again.recovery.replayed == 309
    assert again.recovery.set_aside
    await again.close(clean=True)


async def test_a_salvage_may_be_cut_anywhere(
    folder: Path, open_log: Callable[..., Log], clean: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at each step that changes a name; the next start ends it, and tells of the damage once."""
    from runtime.log import salvage

    at = (folder / "log.db").read_bytes().index(clean[449].body)
    flip(folder / "log.db", at + 30)
    (folder / "log.db-wal").write_bytes(b"")
    real, cuts = salvage.rename_durable, 0
    for allowed in range(4):
        copy = folder.parent / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("log.reserve"))
        left = [allowed]

        def rename(source: Path, target: Path, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            real(source, target)

        monkeypatch.setattr(salvage, "rename_durable", rename)
        try:
            log = open_log(copy, boot_id="cut")
        except KeyboardInterrupt:
            cuts += 1
            monkeypatch.setattr(salvage, "rename_durable", real)
            log = open_log(copy, boot_id="after")
        assert log.recovery.replayed == 449
        assert "450" in (log.recovery.damage or "")
        assert (copy / "log.db.damaged-1").exists()
        await log.close(clean=True)
    assert cuts == 3


async def test_a_wrong_format_number_is_damage(folder: Path, open_log: Callable[..., Log], clean: list[Row]) -> None:
    connection = open_writer(folder / "log.db")
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    found, damage, replayed = await opened_rows(folder, open_log)
    assert replayed == ENTRIES
    assert "format" in (damage or "")
    assert found[:replayed] == clean


async def test_a_log_that_ends_too_early(
    folder: Path, open_log: Callable[..., Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that point beyond the end lie in the write-ahead log, of long entries and of telemetry."""
    monkeypatch.setattr(narration, "PACK_S", 0.0)
    log, rows = open_log(folder), []
    log.start(asyncio.get_running_loop())
    for number in range(40):
        pages = {37: 1}.get(number, 10_000)  # a checkpoint, and a few commits after it
        monkeypatch.setattr(storage, "CHECKPOINT_PAGES", pages)
        words = {"source": {"channel": "words"}, "content": "w" * (LONG if number % 3 else 10)}
        rows.append(log.admit("cognet:stimulus:text", words))
        note = Fact(message="m" * 8600)  # little of it lies on the leaf, so several share one
        log.tell(TelemetryEvent(type="kernel:boot", mono_us=number, after_seq=number, data=note))
        await asyncio.wait_for(log.durable(log.last_seq), 30)
        await asyncio.sleep(0.01)  # the checkpoint comes after the acknowledgement
    await log.close(clean=False)
    size = (folder / "log.db").stat().st_size
    assert size > 40 * 4096
    for left in [512, *range(4096 + 512, size, 5 * 4096)]:
        copy = folder.parent / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("log.reserve"))
        os.truncate(copy / "log.db", left)
        whole = verify(copy).ok  # when the write-ahead log has all that is missing
        found, damage, kept = await opened_rows(copy, open_log)
        assert (damage is None) is whole, left
        assert found[:kept] == rows[:kept], left
        assert kept == len(rows) or not whole
        assert verify(copy).ok, left
