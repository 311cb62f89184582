"""The log as the kernel uses it: admission, durability, order, pages, marks, the end."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from runtime.abi.entries import decode, decode_page
from runtime.abi.errors import (
    EntryInvalid,
    EntryTooLarge,
    EntryTypeUnknown,
    KernelStopping,
    SessionLocked,
)
from runtime.abi.link import Row
from runtime.abi.payloads import FieldStimulus, Reading, Source, TextStimulus
from runtime.durable.database import open_writer
from runtime.log import storage
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.settings import Mark

FIELD = "cognet:stimulus:field"
Open = Callable[..., Log]
Made = Callable[..., Any]


def started(log: Log) -> Log:
    log.start(asyncio.get_running_loop())
    return log


async def durable(log: Log, seq: int | None = None) -> None:
    await asyncio.wait_for(log.durable(log.last_seq if seq is None else seq), 30)


async def test_an_entry_is_seen_at_once_and_durable_soon(folder: Path, open_log: Open, reading: Made) -> None:
    log, seen, kept = started(open_log(folder)), [], []
    log.on_admitted, log.on_durable = seen.extend, kept.extend
    row = log.admit(FIELD, reading(1.5))
    assert seen == [row] == log.recent(0)
    assert kept == []
    await durable(log)
    assert kept == [row]
    entry = decode(row.body, row.seq)
    assert entry.data == FieldStimulus(source=Source(channel="host.cpu"), reading=Reading(value=1.5))
    assert (entry.context.agent_id, entry.context.boot_id, entry.seq) == ("rover", "boot", 1)
    await log.close(clean=True)


async def test_a_wake_and_what_it_had_seen_stand_in_the_envelope(folder: Path, open_log: Open) -> None:
    log = started(open_log(folder))
    data = {"channel": "steer", "reading": {"value": 1}}
    entry = decode(log.admit("cognet:output:field", data, wake_id="w1", cursor=7).body, 1)
    assert (entry.context.wake_id, entry.context.cursor) == ("w1", 7)
    await log.close(clean=True)


@pytest.mark.parametrize(
    ("type_", "data", "error"),
    [
        ("cognet:nothing", {}, EntryTypeUnknown),
        (FIELD, {"source": {"channel": "a/b"}, "reading": {"value": 1}}, EntryInvalid),
        (FIELD, {"source": {"channel": "a"}, "reading": {"value": float("nan")}}, EntryInvalid),
        (FIELD, {"source": {"channel": "a"}, "reading": {"value": 1}, "more": 1}, EntryInvalid),
        ("cognet:stimulus:text", {"source": {"channel": "a"}, "content": "\x01" * 60_000}, EntryTooLarge),
        ("cognet:stimulus:text", TextStimulus(source=Source(channel="a"), content="\ud800"), EntryInvalid),
        ("cognet:action:result", {"action": "a", "ok": True, "value": object()}, EntryInvalid),
    ],
)
async def test_what_is_refused_costs_no_number(
    folder: Path, open_log: Open, reading: Made, type_: str, data: object, error: type[Exception]
) -> None:
    log = started(open_log(folder))
    with pytest.raises(error):
        log.admit(type_, data)
    assert log.admit(FIELD, reading(1)).seq == 1
    await log.close(clean=True)


async def test_waiters_resolve_in_order_of_seq(folder: Path, open_log: Open, reading: Made) -> None:
    log, order = started(open_log(folder)), []
    for value in range(5):
        log.admit(FIELD, reading(value))
    for seq in (4, 1, 5, 3, 2):
        log.durable(seq).add_done_callback(lambda _done, seq=seq: order.append(seq))
    await durable(log)
    assert sorted(order) == order
    await log.close(clean=True)


async def test_a_cancelled_waiter_is_in_nobody_s_way(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder))
    log.admit(FIELD, reading(1))
    log.durable(1).cancel()
    await durable(log)
    await log.close(clean=True)


async def test_all_that_waits_becomes_one_commit(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder))
    for value in range(1500):
        log.admit(FIELD, reading(value))
    await durable(log)
    assert len(log.commit_times()) == 1
    assert log.commit_times() == []
    await log.close(clean=True)


async def test_commits_are_held_but_not_urgent_ones(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder, commit_interval_ms=3_600_000))
    held = log.durable(log.admit(FIELD, reading(1)).seq)
    done, _ = await asyncio.wait([held], timeout=0.05)
    assert not done
    log.admit("axon:interrupt", {"by": "person"}, urgent=True)
    await durable(log)
    assert held.done()
    log.admit(FIELD, reading(2))
    await log.close(clean=True)
    assert LogReader(folder).last_seq == 3


async def test_seq_goes_on_after_each_boot(folder: Path, open_log: Open, reading: Made) -> None:
    for boot in range(3):
        log = started(open_log(folder, boot_id=f"boot-{boot}"))
        assert log.recovery.replayed == 2 * boot
        assert log.recovery.first_boot == (boot == 0)
        log.admit(FIELD, reading(1))
        log.admit(FIELD, reading(2))
        await log.close(clean=True)
    assert [row.seq for row in LogReader(folder).rows()] == [1, 2, 3, 4, 5, 6]
    assert [boot.clean for boot in LogReader(folder).boots()] == [True, True, True]


async def test_an_unclean_end_is_told_and_counted(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder))
    log.admit(FIELD, reading(1))
    await log.close(clean=False)
    again = open_log(folder, boot_id="after")
    assert (again.recovery.clean_before, again.recovery.unclean_boots, again.recovery.boots) == (False, 1, 2)
    message: Any = decode(again.recent(1)[0].body, 2)
    assert (message.data.type, message.data.facts["replayed"]) == ("recovery", 1)
    await again.close(clean=True)


async def test_an_action_without_its_result_is_closed_once(folder: Path, open_log: Open) -> None:
    log = started(open_log(folder))
    log.admit("cognet:action:python", {"action": "done", "code": "1"}, wake_id="w")
    log.admit("cognet:action:result", {"action": "done", "ok": True})
    log.admit("cognet:action:python", {"action": "open", "code": "move()"}, wake_id="w")
    await log.close(clean=False)
    again = open_log(folder, boot_id="after")
    assert again.recovery.actions_closed == 1
    result: Any = decode(again.recent(3)[0].body, 4)
    assert (result.data.action, result.data.ok, result.data.error.kind) == ("open", False, "interrupt")
    assert (result.context.wake_id, result.context.boot_id) == ("w", "after")
    await again.close(clean=False)
    third = open_log(folder, boot_id="third")
    assert third.recovery.actions_closed == 0
    await third.close(clean=True)


async def test_a_session_has_one_writer(folder: Path, open_log: Open) -> None:
    log = open_log(folder)
    with pytest.raises(SessionLocked):
        open_log(folder)
    await log.close(clean=True)
    await open_log(folder).close(clean=True)


async def test_nothing_is_admitted_after_the_end_began(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder))
    log.admit(FIELD, reading(1))
    await log.close(clean=True)
    with pytest.raises(KernelStopping):
        log.admit(FIELD, reading(2))
    assert LogReader(folder).last_seq == 1


async def test_pages_are_the_same_from_disk_and_from_memory(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder, window_entries=10))
    rows: list[Row] = []
    log.on_admitted = rows.extend
    for value in range(700):
        log.admit(FIELD, reading(value))
        if value % 50 == 0:
            await durable(log)
    after, entries = 0, []
    while True:
        page = await asyncio.to_thread(lambda: log.page(after=after, upto=690))  # noqa: B023 - awaited here
        if not page.count:
            break
        assert page.first_seq == after + 1
        entries += decode_page(page.bodies, page.first_seq)
        after = entries[-1].seq
    assert entries == [decode(row.body, row.seq) for row in rows[:690]]
    assert (await asyncio.to_thread(lambda: log.page(after=-1, upto=5))).first_seq == 1
    await log.close(clean=True)


async def test_a_page_never_exceeds_a_frame(folder: Path, open_log: Open) -> None:
    log = started(open_log(folder, window_entries=1))
    for _ in range(100):
        log.admit("cognet:stimulus:text", {"source": {"channel": "a"}, "content": "\x01" * 40_000})
        await durable(log)
    page = await asyncio.to_thread(lambda: log.page(after=0, upto=100))
    assert 0 < page.count < 100
    assert len(page.bodies) <= 8 * 1024 * 1024 + 2
    await log.close(clean=True)


async def test_what_a_store_value_stands_on(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder))
    for value in range(3):
        log.admit(FIELD, reading(value))
    await durable(log)
    chain = await asyncio.to_thread(log.chain_at, 2)
    assert re.fullmatch("[0-9a-f]{64}", chain)
    assert await asyncio.to_thread(log.holds, 2, chain)
    assert not await asyncio.to_thread(log.holds, 3, chain)
    assert not await asyncio.to_thread(log.holds, 9, "")
    assert await asyncio.to_thread(log.holds, 0, "00" * 32)
    await log.close(clean=True)


async def test_the_last_of_a_type(folder: Path, open_log: Open, reading: Made) -> None:
    log = started(open_log(folder))
    log.admit("axon:agent:settled", {"upto_seq": 0})
    log.admit(FIELD, reading(1))
    log.admit(FIELD, reading(2))
    await durable(log)
    assert await asyncio.to_thread(log.last_of_type, "axon:agent:settled") == 1
    assert await asyncio.to_thread(log.last_of_type, FIELD) == 3
    assert await asyncio.to_thread(log.last_of_type, "axon:interrupt") == 0
    await log.close(clean=True)


async def test_marks_become_durable_with_their_entries_and_old_epochs_are_retired(
    folder: Path, open_log: Open, reading: Made
) -> None:
    log = started(open_log(folder))
    for number in range(12):
        mark = Mark(channel="host.cpu", source_id="", epoch=f"e{number}", high=number)
        log.admit(FIELD, reading(number), mark=mark)
        await durable(log)
    await log.close(clean=True)
    again = open_log(folder)
    assert [mark.epoch for mark in again.marks] == [f"e{number}" for number in range(3, 12)]
    assert [mark.epoch for mark in again.marks if not mark.retired] == ["e11"]
    await again.close(clean=True)


async def test_the_write_ahead_log_stays_bounded_and_is_empty_after_the_end(
    folder: Path, open_log: Open, reading: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "CHECKPOINT_PAGES", 20)
    log = started(open_log(folder))
    for value in range(400):
        log.admit(FIELD, reading(value))
        await durable(log)
        assert size_of(folder / "log.db-wal") < 60 * 4120
    await log.close(clean=True)
    assert size_of(folder / "log.db-wal") == 0


async def test_a_write_ahead_log_that_a_reader_made_grow_is_given_back(
    folder: Path, open_log: Open, reading: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "CHECKPOINT_PAGES", 20)
    monkeypatch.setattr(storage, "TRUNCATE_PAGES", 40)
    log = started(open_log(folder))
    log.admit(FIELD, reading(0))
    await durable(log)
    pinned = apsw.Connection(str(folder / "log.db"))
    pinned.execute("BEGIN")
    pinned.execute("SELECT count(*) FROM entry").get  # noqa: B018 - the read pins a snapshot
    for value in range(200):
        log.admit(FIELD, reading(value))
        await durable(log)
    grown = size_of(folder / "log.db-wal")
    pinned.close()
    for value in range(60):
        log.admit(FIELD, reading(value))
        await durable(log)
    assert size_of(folder / "log.db-wal") < grown / 2
    await log.close(clean=True)


def size_of(path: Path) -> int:
    return path.stat().st_size


async def test_the_settings_of_the_connection(folder: Path, open_log: Open) -> None:
    connection = open_writer(folder / "other.db")
    found = {
        name: connection.pragma(name)
        for name in ("synchronous", "journal_mode", "page_size", "mmap_size", "wal_autocheckpoint", "cell_size_check")
    }
    assert found == {
        "synchronous": 2,
        "journal_mode": "wal",
        "page_size": 4096,
        "mmap_size": 0,
        "wal_autocheckpoint": 0,
        "cell_size_check": 1,
    }
    assert connection.pragma("trusted_schema") == 0
    connection.close()
