"""Layer 0 for sealing and retention: every state a cut leaves, recovered by the product and compared with what was."""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from runtime.abi.link import Row
from runtime.durable import files
from runtime.durable.crashes import State, states
from runtime.durable.faults import Operation, Recorder
from runtime.log import inventory, sealing, segment, storage
from runtime.log.archive import FOLDER
from runtime.log.log import Log
from runtime.log.reader import LogReader
from runtime.log.verify import verify

FIELD = "cognet:stimulus:field"
SETTINGS: dict[str, Any] = {"window_entries": 4, "seal_bytes": 20_000, "retain_bytes": 12_000}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "LOOK_S", 0.005)
    monkeypatch.setattr(sealing, "REST", 0.0)
    monkeypatch.setattr(sealing, "KEEP_ENTRIES", 4)
    monkeypatch.setattr(sealing, "BLOCK_ENTRIES", 16)
    monkeypatch.setattr(segment, "BLOCK_ENTRIES", 16)
    monkeypatch.setattr(storage, "SWEEP_ROWS", 16)
    monkeypatch.setattr(storage, "CHECKPOINT_PAGES", 24)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """What SQLite does, and what is done to segment files."""
    layer = Recorder("axon-test-recorder")

    @contextmanager
    def writing(path: Path) -> Iterator[BinaryIO]:
        temporary = f"{FOLDER}/.{path.name}.x.tmp"
        with files.writing_durable(path) as file:
            yield file
        data = path.read_bytes()
        layer.record(Operation("write", temporary, 0, data[: len(data) // 2]))
        layer.record(Operation("write", temporary, len(data) // 2, data[len(data) // 2 :]))
        layer.record(Operation("sync", temporary))
        layer.record(Operation("rename", temporary, note=f"{FOLDER}/{path.name}"))

    def remove(path: Path) -> None:
        layer.record(Operation("delete", f"{FOLDER}/{path.name}"))
        files.remove_durable(path)

    monkeypatch.setattr(sealing, "writing_durable", writing)
    monkeypatch.setattr(sealing, "remove_durable", remove)
    yield layer
    layer.close()


def quiet(folder: Path) -> bool:
    reader = LogReader(folder)
    noted = reader.catalog()
    small = sum(each.size_bytes for each in noted.segments) <= SETTINGS["retain_bytes"]
    swept = not noted.pieces or noted.floor.seq == noted.pieces[-1].last
    live = sum(len(row.body) for row in reader.rows(after=noted.floor.seq))
    return small and swept and live <= SETTINGS["seal_bytes"]


async def record(log: Log, recorder: Recorder, folder: Path, *, rounds: int) -> dict[int, Row]:
    """Rounds of entries, each sealed, swept and retired before the next; notes of what was begun and acknowledged."""
    rows: dict[int, Row] = {}
    log.start(asyncio.get_running_loop())
    for _ in range(rounds):
        for _ in range(8):
            recorder.note((log.durable_seq, log.last_seq + 9))
            for _ in range(9):
                row = log.admit(FIELD, {"source": {"channel": "c"}, "reading": {"value": log.last_seq}})
                rows[row.seq] = row
            await asyncio.wait_for(log.durable(log.last_seq), 30)
            recorder.note((log.last_seq, log.last_seq))
        deadline = time.monotonic() + 30
        while not await asyncio.to_thread(quiet, folder):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)
    await log.close(clean=True)
    return rows


def lay_out(state: State, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / FOLDER).mkdir(parents=True)
    for name, image in state.files.items():
        (folder / name).write_bytes(image)


def check(folder: Path, state: State, rows: dict[int, Row], log: Log) -> None:
    """Nothing acknowledged is missing but what was retired, nothing is wrong, and no file is left over."""
    acknowledged, begun = state.note or (0, 0)
    where = (state.cut, state.operation)
    reader = LogReader(folder)
    noted = reader.catalog()
    assert log.recovery.damage is None or log.recovery.damage.startswith("the last commit in"), (where, log.recovery)
    assert acknowledged <= log.recovery.replayed <= begun, where
    found = [row for row in reader.rows() if row.seq <= log.recovery.replayed]
    if noted.retired:
        told = found.pop(0)
        assert (told.seq, told.type) == (noted.retired, "axon:system:message"), where
    assert found == [rows[seq] for seq in range(noted.retired + 1, log.recovery.replayed + 1)], where
    assert {path.name for path in (folder / FOLDER).iterdir()} == {each.name for each in noted.segments}, where
    assert noted.lost == [], where


async def test_no_cut_of_a_seal_or_a_retention_loses_or_doubles_an_entry(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder
) -> None:
    rows = await record(open_log(folder, vfs="axon-test-recorder", **SETTINGS), recorder, folder, rounds=6)
    assert LogReader(folder).catalog().retired
    cut, count = folder.parent / "cut", 0
    for state in states(recorder.operations, share=0.1, cuts=("dropped", "kept", "torn", "garbage")):
        count += 1
        lay_out(state, cut)
        log = open_log(cut, **SETTINGS)
        check(cut, state, rows, log)
        await log.close(clean=True)
    assert count > 150


async def test_the_end_of_a_cut_seal_may_be_cut_itself(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recovery that ends at each of its steps on segment files; the next one ends what is left."""
    rows = await record(open_log(folder, vfs="axon-test-recorder", **SETTINGS), recorder, folder, rounds=4)
    cut, cuts, real = folder.parent / "cut", 0, Path.unlink
    for state in states(recorder.operations, cuts=("kept",)):
        names = [name for name in state.files if name.startswith(FOLDER)]
        lay_out(state, cut)
        left = [0]

        def unlink(path: Path, missing_ok: bool = False, left: list[int] = left) -> None:
            if path.parent.name == FOLDER and not left[0]:
                raise KeyboardInterrupt
            real(path, missing_ok=missing_ok)

        monkeypatch.setattr(inventory.Path, "unlink", unlink)
        try:
            log = open_log(cut, **SETTINGS)
        except KeyboardInterrupt:
            cuts += 1
            monkeypatch.setattr(inventory.Path, "unlink", real)
            log = open_log(cut, **SETTINGS)
            check(cut, state, rows, log)
        finally:
            monkeypatch.setattr(inventory.Path, "unlink", real)
        assert len(names) <= 12
        await log.close(clean=True)
        if cuts >= 12:
            return
    assert cuts


async def test_control_a_note_before_its_file_loses_entries(
    folder: Path, open_log: Callable[..., Log], recorder: Recorder
) -> None:
    """The order that must not be: the rows go while the file isn't on the disk yet."""
    await record(open_log(folder, vfs="axon-test-recorder", **SETTINGS), recorder, folder, rounds=2)
    late = [o for o in recorder.operations if not o.file.startswith(FOLDER)]
    lost = 0
    for state in states(late, share=0.05, cuts=("kept",)):
        cut = folder.parent / "cut"
        lay_out(state, cut)
        log = open_log(cut, **SETTINGS)
        lost += bool(log.recovery.damage and "missing" in log.recovery.damage)
        await log.close(clean=True)
    assert lost


async def test_what_is_left_over_stays_verifiable(folder: Path, open_log: Callable[..., Log]) -> None:
    log = open_log(folder, **SETTINGS)
    log.start(asyncio.get_running_loop())
    log.admit(FIELD, {"source": {"channel": "c"}, "reading": {"value": 1}})
    await asyncio.wait_for(log.durable(1), 30)
    await log.close(clean=True)
    (folder / FOLDER).mkdir()
    for name in (".0001-0002.seg.x.tmp", "0000000000000001-0000000000000001.seg"):
        (folder / FOLDER / name).write_bytes(b"half")
    (folder / FOLDER / "0000000000000050-0000000000000099.seg").write_bytes(b"nobody knows")
    again = open_log(folder, **SETTINGS)
    assert [path.name for path in (folder / FOLDER).iterdir()] == ["0000000000000050-0000000000000099.seg.damaged-1"]
    assert "damaged-1" in (again.recovery.damage or "")
    await again.close(clean=True)
    assert verify(folder).ok
