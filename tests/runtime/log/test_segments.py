"""Any mix of segments and live rows reads as the original sequence; bytes that aren't what was written are named."""

import asyncio
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.abi.entries import EntryContext, decode_page
from runtime.abi.errors import LogDamaged
from runtime.abi.link import Row
from runtime.durable.database import open_writer
from runtime.log import catalog, chain, retention, schema, segment
from runtime.log.admission import Admission
from runtime.log.archive import FOLDER, Archive
from runtime.log.catalog import Catalog, Floor, Sealed
from runtime.log.chain import Raw
from runtime.log.log import Log
from runtime.log.pages import chain_at, read_page
from runtime.log.reader import LogReader
from runtime.log.segment import BLOCK_ENTRIES
from runtime.log.verify import verify

ENTRIES = 1400
CONTEXT = EntryContext(agent_id="rover", session_id="session", boot_id="boot")
FIELD = "cognet:stimulus:field"


@pytest.fixture(scope="module")
def original() -> list[Raw]:
    admission = Admission(CONTEXT, last_seq=0, last_chain=chain.GENESIS)
    raws: list[Raw] = []
    for value in range(ENTRIES):
        reading: Any = {"source": {"channel": f"c{value % 5}"}, "reading": {"value": "x" * (value % 97)}}
        row, link = admission.place(FIELD, admission.body(FIELD, reading))
        raws.append((row.seq, row.type.encode(), row.body, link))
    return raws


@pytest.fixture
def place(folder: Path) -> Path:
    return folder


def chain_before(raws: list[Raw], seq: int) -> bytes:
    return raws[seq - 2][3] if seq > 1 else chain.GENESIS


def write_segment(folder: Path, raws: list[Raw], first: int, last: int) -> Sealed:
    (folder / FOLDER).mkdir(exist_ok=True)
    path = folder / FOLDER / segment.file_name(first, last)
    rows = raws[first - 1 : last]
    blocks = [rows[at : at + BLOCK_ENTRIES] for at in range(0, len(rows), BLOCK_ENTRIES)]
    with path.open("wb") as file:
        footer, digest = segment.write(file, blocks, session_id="session", before=chain_before(raws, first))
    ends = (footer.first, footer.last, footer.before, footer.chain)
    return Sealed(*ends, path.stat().st_size, digest, footer.types, 0.0)


def build(folder: Path, raws: list[Raw], *, ends: list[int], swept: int, retired: int) -> None:
    """Segments that end at ``ends``, ``swept`` of the newest one's rows deleted, the ``retired`` oldest gone."""
    connection = open_writer(folder / schema.FILE_NAME)
    schema.create(connection, agent_id="rover", session_id="session")
    sealed, first = [], 1
    for last in ends:
        sealed.append(write_segment(folder, raws, first, last))
        first = last + 1
    floor = max((sealed[-1].first - 1 if sealed else 0) + swept, 0)
    floor = min(floor, ends[-1] if ends else 0)
    with connection:
        for each in sealed:
            catalog.put_segment(connection, each)
        catalog.put_floor(connection, Floor(floor, chain_before(raws, floor + 1)))
        for seq, type_, body, link in raws[floor:]:
            connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", (seq, type_.decode(), body, link))
        gone = min(retired, len(sealed) - 1) if sealed else 0
        if gone:
            noted = Catalog(Floor(), sealed, [])
            catalog.put_gap(connection, retention.retired(noted, gone, context=CONTEXT))
            for each in sealed[:gone]:
                (folder / FOLDER / each.name).unlink()
    connection.close()


def pages_of(folder: Path, after: int, upto: int) -> Iterator[tuple[int, bytes]]:
    connection = open_writer(folder / schema.FILE_NAME)
    archive = Archive(folder)
    while (page := read_page(connection, archive, after=after, upto=upto)).count:
        for entry in decode_page(page.bodies, page.first_seq):
            yield entry.seq, entry.type.encode()
        after = page.first_seq + page.count - 1
    connection.close()


@settings(deadline=None, max_examples=40)
@given(
    ends=st.lists(st.integers(1, ENTRIES), max_size=4, unique=True).map(sorted),
    swept=st.integers(0, ENTRIES),
    retired=st.integers(0, 3),
    after=st.integers(-1, ENTRIES + 3),
    upto=st.integers(0, ENTRIES + 3),
)
def test_any_mix_reads_as_the_original(
    original: list[Raw], ends: list[int], swept: int, retired: int, after: int, upto: int
) -> None:
    base = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        build(base, original, ends=ends, swept=swept, retired=retired)
        reader = LogReader(base)
        noted = reader.catalog()
        noted.check()
        gone = noted.retired
        expected = [Row(s, t.decode(), b) for s, t, b, _ in original if max(after, gone) < s <= upto]
        rows = list(reader.rows(after=after, upto=upto))
        if max(after, 0) < min(gone, upto):
            told = rows.pop(0)
            assert (told.seq, told.type) == (min(gone, upto), "axon:system:message")
            assert b'"retention"' in told.body
        assert rows == expected
        listed = list(pages_of(base, max(after, 0), upto))
        assert [seq for seq, type_ in listed if type_ == b"cognet:stimulus:field"] == [row.seq for row in expected]
        connection = open_writer(base / schema.FILE_NAME)
        for seq in {max(gone, 1), gone + 1, (gone + ENTRIES) // 2, ENTRIES}:
            assert chain_at(connection, Archive(base), seq) == (original[seq - 1][3] if seq >= gone else None)
        connection.close()
    finally:
        shutil.rmtree(base)


def flipped(path: Path, rng: random.Random) -> bytes:
    """Change one bit of the file; returns its bytes before."""
    data = path.read_bytes()
    at = rng.randrange(len(data))
    path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
    return data


def until_damage(rows: Iterator[Row]) -> tuple[list[Row], int | None]:
    """What came before the error, and where that was."""
    found: list[Row] = []
    try:
        for row in rows:
            found.append(row)
    except LogDamaged as damage:
        return found, damage.facts["seq"]
    return found, None


def test_a_flipped_bit_in_a_segment_is_never_a_wrong_entry_and_always_found(place: Path, original: list[Raw]) -> None:
    build(place, original, ends=[300, 700, 1000], swept=300, retired=0)
    rng = random.Random(5)
    rows = [Row(s, t.decode(), b) for s, t, b, _ in original]
    path = place / FOLDER / segment.file_name(301, 700)
    for _ in range(150):
        before = flipped(path, rng)
        found, bad = until_damage(LogReader(place).rows())
        assert bad is None or (300 < bad <= 700 and len(found) >= 300)
        assert found == rows[: len(found)]
        result = verify(place)
        assert not result.ok
        assert 300 < (result.first_bad_seq or 0) <= 700
        path.write_bytes(before)
    assert verify(place).ok


@pytest.mark.parametrize("how", ["flip", "cut short", "missing", "another's"])
async def test_a_damaged_segment_is_set_aside_and_told_and_the_rest_stays(
    place: Path, original: list[Raw], open_log: Callable[..., Log], how: str
) -> None:
    build(place, original, ends=[300, 700, 1000], swept=300, retired=0)
    path = place / FOLDER / segment.file_name(301, 700)
    if how == "flip":
        data = path.read_bytes()
        path.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
        log = open_log(place, boot_id="met", window_entries=10)
        log.start(asyncio.get_running_loop())
        with pytest.raises(LogDamaged):
            await asyncio.to_thread(lambda: log.page(after=300, upto=2000))
        log.admit("axon:interrupt", {"by": "person"})
        await asyncio.wait_for(log.durable(log.last_seq), 30)
        await log.close(clean=True)
    elif how == "cut short":
        path.write_bytes(path.read_bytes()[:-9])
    elif how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"2")
        connection = open_writer(place / schema.FILE_NAME)
        connection.execute("UPDATE meta SET suspect = 1")
        connection.close()
    again = open_log(place, boot_id="after")
    assert segment.file_name(301, 700) in (again.recovery.damage or "")
    assert again.first_seq == 1
    found = list(LogReader(place).rows(upto=ENTRIES))
    (told,) = [row for row in found if row.type == "axon:system:message"]
    assert told.seq == 700
    assert b'"type":"damage"' in told.body
    assert [row.seq for row in found] == [*range(1, 301), 700, *range(701, ENTRIES + 1)]
    assert all(row == Row(row.seq, FIELD, original[row.seq - 1][2]) for row in found if row.seq != 700)
    result = verify(place)
    assert (result.ok, result.lost, result.first_bad_seq, result.seq_monotonic) == (False, 400, 301, True)
    if how != "missing":
        assert (place / FOLDER / (segment.file_name(301, 700) + ".damaged-1")).exists()
    await again.close(clean=True)
    last = open_log(place, boot_id="later")
    assert last.recovery.damage is None
    await last.close(clean=True)


async def test_a_damaged_segment_whose_rows_are_still_live_costs_nothing(
    place: Path, original: list[Raw], open_log: Callable[..., Log]
) -> None:
    build(place, original, ends=[300, 700], swept=0, retired=0)
    (place / FOLDER / segment.file_name(301, 700)).unlink()
    log = open_log(place)
    assert [row.seq for row in LogReader(place).rows(upto=ENTRIES)] == list(range(1, ENTRIES + 1))
    assert "missing" in (log.recovery.damage or "")
    await log.close(clean=True)
    assert verify(place).ok


@pytest.mark.parametrize("retired", [0, 1])
async def test_a_database_that_is_lost_is_built_again_from_its_segments(
    place: Path, original: list[Raw], open_log: Callable[..., Log], retired: int
) -> None:
    build(place, original, ends=[300, 700, 1000], swept=300, retired=retired)
    (place / schema.FILE_NAME).write_bytes(b"")
    (place / "log.db-wal").unlink(missing_ok=True)
    log = open_log(place)
    assert log.recovery.replayed == 1000
    assert log.recovery.damage
    found = [row for row in LogReader(place).rows(upto=1000) if row.type == FIELD]
    assert found == [Row(s, t.decode(), b) for s, t, b, _ in original if (300 if retired else 0) < s <= 1000]
    await log.close(clean=True)


async def test_a_flipped_bit_in_the_database_beside_segments(
    place: Path, original: list[Raw], open_log: Callable[..., Log]
) -> None:
    build(place, original, ends=[300, 700, 1000], swept=150, retired=1)
    connection = open_writer(place / schema.FILE_NAME)
    connection.wal_checkpoint(mode=3)
    connection.close()
    rng = random.Random(6)
    rows = {s: Row(s, t.decode(), b) for s, t, b, _ in original}
    for _ in range(40):
        copy = place.parent / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(place, copy)
        flipped(copy / schema.FILE_NAME, rng)
        log = open_log(copy, boot_id="after")
        await log.close(clean=True)
        found = list(LogReader(copy).rows(upto=log.recovery.replayed))
        real = [row for row in found if row.type == FIELD]
        assert all(row == rows[row.seq] for row in real)
        assert [row.seq for row in real] == list(range(301, log.recovery.replayed + 1))
        assert log.recovery.replayed == ENTRIES or log.recovery.damage
        assert log.recovery.replayed >= 1000
