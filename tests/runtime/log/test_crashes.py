"""Layer 0: every state that a power cut can leave of what the product's own writer did, opened and checked."""

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from runtime.abi.entries import decode
from runtime.durable import database
from runtime.durable.crashes import State, states
from runtime.durable.faults import Operation, Recorder
from runtime.log import chain, recovery, storage
from runtime.log.log import Log
from runtime.log.settings import Mark
from runtime.media import disk
from runtime.media.disk import DiskRing
from runtime.media.ring import MediaRing, ref_of

FIELD = "cognet:stimulus:field"


@pytest.fixture(autouse=True)
def frequent_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "CHECKPOINT_PAGES", 24)
    monkeypatch.setattr(disk, "CHECKPOINT_PAGES", 24)


@pytest.fixture
def recorder() -> Any:
    layer = Recorder("axon-test-recorder")
    yield layer
    layer.close()


async def write(log: Log, recorder: Recorder, *, commits: int, media: MediaRing | None = None) -> None:
    """Groups of one to twenty entries, each group awaited, with a note of what was begun and what acknowledged."""
    rng = random.Random(1)
    acknowledged = log.last_seq
    log.start(asyncio.get_running_loop())
    for number in range(commits):
        size = rng.choice((1, 1, 1, 2, 5, 20))
        recorder.note((acknowledged, log.last_seq + size))
        for _ in range(size):
            seq = log.last_seq + 1
            if media is not None and rng.random() < 0.5:
                ref = media.stage(seq.to_bytes(4, "big") * rng.choice((10, 600, 1500)))
                data: dict[str, Any] = {"source": {"channel": "camera"}, "ref": ref, "kind": "image/jpeg"}
                log.admit("cognet:stimulus:visual", data | {"width": 4, "height": 4})
            else:
                mark = Mark(channel="host.cpu", source_id="", epoch=f"epoch-{number // 20}", high=seq)
                log.admit(FIELD, {"source": {"channel": "host.cpu"}, "reading": {"value": seq}}, mark=mark)
        await asyncio.wait_for(log.durable(log.last_seq), 30)
        acknowledged = log.last_seq
        recorder.note((acknowledged, acknowledged))
    await log.close(clean=True)
    recorder.note((acknowledged, acknowledged))


def lay_out(state: State, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, image in state.files.items():
        (folder / name).write_bytes(image)


def problem(state: State, folder: Path, *, media: bool = False) -> str | None:
    """What is wrong with the state after SQLite recovered it; None when every promise holds."""
    acknowledged, begun = state.note or (0, 0)
    lay_out(state, folder)
    try:
        connection = apsw.Connection(str(folder / "log.db"))
    except apsw.Error as error:
        return f"unreadable: {error}"
    try:
        if not connection.table_exists("main", "entry"):
            return "lost everything" if acknowledged else None
        if connection.pragma("integrity_check") != "ok":
            return "corrupt"
        rows = connection.execute(f"SELECT {chain.COLUMNS} FROM entry ORDER BY seq").fetchall()
        high = connection.execute("SELECT ifnull(max(high), 0) FROM mark").get
    except apsw.Error as error:
        return f"unreadable: {error}"
    finally:
        connection.close()
    chain.check(rows, after=0, previous=chain.GENESIS)
    if not acknowledged <= len(rows) <= begun:
        return f"lost: {len(rows)} of {acknowledged} acknowledged, {begun} begun"
    if high > len(rows):
        return f"a mark of {high} beyond {len(rows)}"
    return dangling(rows, folder) if media else None


def dangling(rows: list[Any], folder: Path) -> str | None:
    """Rows whose bytes the media store doesn't have."""
    if not any(row[1] == b"cognet:stimulus:visual" for row in rows):
        return None
    ring = DiskRing(folder, max_bytes=10**9)
    try:
        refs = [decode(row[2], row[0]).data.ref for row in rows if row[1] == b"cognet:stimulus:visual"]
        return "dangling ref" if any(ring.get(ref) is None for ref in refs) else None
    finally:
        ring.close()


def problems(recorder: Recorder, folder: Path, *, share: float, media: bool = False) -> tuple[int, list[str]]:
    """How many states were opened, and what was wrong, over a share of the crash points."""
    count, wrong = 0, []
    for state in states(recorder.operations, share=share):
        count += 1
        if found := problem(state, folder, media=media):
            wrong.append(f"{state.cut}@{state.operation}: {found}")
    return count, wrong


async def test_no_cut_loses_what_was_acknowledged(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder, tmp_path: Path
) -> None:
    await write(open_log(folder, vfs="axon-test-recorder"), recorder, commits=60)
    assert any(o.kind == "write" and o.file == "log.db" and o.at for o in recorder.operations), "no checkpoint"
    count, wrong = problems(recorder, folder.parent / "cut", share=0.35)
    assert wrong == []
    assert count > 500


async def test_no_cut_leaves_a_row_without_its_bytes(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder
) -> None:
    media = DiskRing(folder, max_bytes=10**9, vfs="axon-test-recorder")
    await write(open_log(folder, vfs="axon-test-recorder", media=media), recorder, commits=20, media=media)
    media.close()
    count, wrong = problems(recorder, folder.parent / "cut", share=0.15, media=True)
    assert wrong == []
    assert count > 100


async def test_control_synchronous_normal_loses_commits(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    weaker = tuple(p.replace("FULL", "NORMAL") for p in database.WRITER_PRAGMAS)
    monkeypatch.setattr(database, "WRITER_PRAGMAS", weaker)
    await write(open_log(folder, vfs="axon-test-recorder"), recorder, commits=20)
    _, wrong = problems(recorder, folder.parent / "cut", share=0.25)
    assert any("lost" in p for p in wrong)


async def test_control_psow_loses_commits_when_a_block_turns_to_garbage(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "URI_OPTIONS", "psow=1")
    await write(open_log(folder, vfs="axon-test-recorder"), recorder, commits=20)
    _, wrong = problems(recorder, folder.parent / "cut", share=0.5)
    assert any(p.startswith(("garbage", "mixed")) and "lost" in p for p in wrong)


class LateRing:
    """Bytes reach the disk one flush after the rows that name them: the order that must not be."""

    def __init__(self, ring: DiskRing) -> None:
        self._ring = ring
        self._next: list[bytes] = []

    def stage(self, data: bytes) -> str:
        self._next.append(data)
        return ref_of(data)

    def flush(self) -> None:
        self._ring.flush()
        ready, self._next = self._next, []
        for data in ready:
            self._ring.stage(data)


async def test_control_media_after_rows_leaves_rows_without_their_bytes(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder
) -> None:
    ring = DiskRing(folder, max_bytes=10**9, vfs="axon-test-recorder")
    late: Any = LateRing(ring)
    await write(open_log(folder, vfs="axon-test-recorder", media=late), recorder, commits=15, media=late)
    ring.close()
    _, wrong = problems(recorder, folder.parent / "cut", share=0.08, media=True)
    assert any("dangling" in p for p in wrong)


async def test_recovery_may_be_cut_anywhere_and_is_repeated(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder
) -> None:
    log = open_log(folder)
    log.start(asyncio.get_running_loop())
    log.admit("cognet:action:python", {"action": "a1", "code": "move()"})
    await asyncio.wait_for(log.durable(1), 30)
    await log.close(clean=False)
    recorder.operations.clear()
    before = {name: (folder / name).read_bytes() for name in ("log.db", "log.db-wal")}
    again = open_log(folder, vfs="axon-test-recorder")
    await again.close(clean=True)
    for state in states(recorder.operations, before=before):
        cut = folder.parent / "cut"
        lay_out(state, cut)
        resumed = open_log(cut)
        rows = resumed.page(after=0, upto=10)
        assert rows.bodies.count(b'"cognet:action:result"') == 1, (state.cut, state.operation)
        await resumed.close(clean=True)


async def lost_by_a_second_cut(folder: Path, open_log: Callable[..., Log], recorder: Recorder) -> list[str]:
    """Cut, boot, and cut again while that boot writes: each time the block that it was writing turns to noise."""
    await write(open_log(folder, vfs="axon-test-recorder"), recorder, commits=12)
    first, wrong = list(recorder.operations), []
    for state in states(first, cuts=("dropped",)):
        acknowledged, begun = state.note or (0, 0)
        session = folder.parent / "again"
        lay_out(state, session)
        if not acknowledged or "log.db-wal" not in state.files:
            continue
        recorder.operations.clear()
        again = open_log(session, vfs="axon-test-recorder")
        await again.close(clean=False)
        recorder.operations.insert(0, Operation("note", note=(acknowledged, begun + 1)))
        for second in states(recorder.operations[:4], before=state.files, cuts=("garbage",)):
            if found := problem(second, folder.parent / "cut"):
                wrong.append(f"{state.operation}, {second.operation}: {found}")
    return wrong


async def test_a_second_cut_during_recovery_takes_nothing_acknowledged(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder
) -> None:
    assert await lost_by_a_second_cut(folder, open_log, recorder) == []


async def test_control_a_boot_that_writes_behind_the_last_commit_loses_it_in_a_second_cut(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "copy_back", lambda _connection: None)
    assert any("lost" in p for p in await lost_by_a_second_cut(folder, open_log, recorder))
