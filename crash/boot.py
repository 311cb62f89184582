"""The board boots on what a cut left: the product's own recovery, twice, and a look at all that it made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from capsule.errors import AxonError
from crash.promise import Found
from crash.truth import GENESIS, Truth, Written, link
from runtime.abi.entries import EntryContext
from runtime.kernel.session import Session
from runtime.log import catalog
from runtime.log.archive import FOLDER
from runtime.log.catalog import Catalog
from runtime.log.marks import read_marks
from runtime.log.reader import LogReader
from runtime.log.recovery import Opened, open_log
from runtime.log.settings import LogSettings
from runtime.log.verify import verify
from runtime.media.disk import DiskRing

SETTINGS = LogSettings(volatile_data=True, window_entries=64)
CUT_SHORT = "the last commit in the write-ahead log doesn't hold"
"""What recovery may say after a mere cut: a commit that nobody had acknowledged was left out."""
TOLD = ("axon:system:message", "cognet:action:result")
KNOWN = ("log.db", "log.db-wal", "log.db-shm", "log.lock", "writer.lock", "log.reserve", FOLDER)
EMPTY_ASIDE = ("log.db.damaged-1-wal",)
"""Opening a log to look at it makes an empty write-ahead log, which goes with it."""
MEDIA = ("media.db", "media.db-wal", "media.db-shm", "media.db-journal")


class Wrong(Exception):
    """Something in a recovered log isn't as it must be."""


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to the log before: recovery must tell it, and keep the damaged files, byte for byte.

    Entries up to ``retired`` had been removed; where the damage took the note of that, they are called lost.
    """

    aside: dict[str, bytes]
    retired: int


def boot(data: Path, truth: Truth, *, damage: Damage | None = None, thorough: bool = False) -> Found:
    """Open the last session as a kernel does, compare with the truth, and do it again on top of that."""
    try:
        session = Session.take(data, None)
    except (AxonError, OSError) as error:
        return Found(corrupt=f"no session can be taken: {error}")
    try:
        entries, rows = _first(session, truth, damage)
        _again(session, rows)
        if thorough and not (found := verify(session.folder)).ok and damage is None:
            raise Wrong(f"axon log verify says: {found.reason}")
        return Found(entries=entries, values={"session": session.id}, lacks=_lacks(session.folder, truth, entries))
    except Wrong as wrong:
        return Found(corrupt=str(wrong))
    except (AxonError, OSError, apsw.Error) as error:
        return Found(corrupt=f"{type(error).__name__}: {error}")
    finally:
        session.release()


@contextmanager
def opened(session: Session, boot_id: str) -> Iterator[Opened]:
    """The log, opened and recovered; then the process ends without a word."""
    context = EntryContext(agent_id="rover", session_id=session.id, boot_id=boot_id)
    found = open_log(session.folder, context=context, settings=SETTINGS)
    try:
        yield found
    finally:
        found.connection.close(True)
        found.lock.release()


def _first(session: Session, truth: Truth, damage: Damage | None) -> tuple[int, list[Written]]:
    """How many entries of the truth are there, and all live rows after the recovery."""
    with opened(session, "boot-1") as found:
        recovery = found.recovery
        noted = catalog.read(found.connection)
        rows = _rows(found.connection)
        _compare(rows, truth, noted=noted, upto=recovery.replayed, last=recovery.last_seq)
        _compare_marks(found, truth, recovery.replayed)
    if noted.pieces:
        rows_before = _sealed(session.folder, noted)
        _compare_sealed(rows_before, truth, noted, retired=damage.retired if damage else 0)
        rows = [*rows_before, *rows]
    _compare_files(session.folder, noted, damage)
    _check_actions(rows)
    if damage is not None:
        _check_told(rows)
    elif recovery.set_aside or (recovery.damage and not recovery.damage.startswith(CUT_SHORT)):
        raise Wrong(f"a mere cut is called damage: {recovery.damage} ({recovery.set_aside})")
    return recovery.replayed, rows


def _again(session: Session, rows: Sequence[Written]) -> None:
    """Recovery on top of recovery finds what that left, and changes nothing of it."""
    before = rows[-1].seq if rows else 0
    with opened(session, "boot-2") as found:
        recovery = found.recovery
        if recovery.replayed != before or recovery.damage or recovery.set_aside or recovery.actions_closed:
            raise Wrong(f"a second recovery finds something else: {recovery}")
        now = _rows(found.connection)
        kept = [row for row in rows if now and row.seq >= now[0].seq]
        if now[: len(kept)] != kept:
            raise Wrong("a second recovery changed entries")
        _check_links(now[len(kept) :], before=rows[-1].chain if rows else GENESIS, after=before)
        report = found.connection.execute("PRAGMA integrity_check").get
        if report != "ok":
            raise Wrong(f"SQLite reports: {report}")


def _rows(connection: apsw.Connection) -> list[Written]:
    rows: Any = connection.execute("SELECT seq, type, body, chain FROM entry ORDER BY seq")
    return [Written(*row) for row in rows]


def _compare(rows: list[Written], truth: Truth, *, noted: Catalog, upto: int, last: int) -> None:
    """Live rows: those of the truth from the floor on, byte for byte, then what recovery told, without a hole."""
    known = [row for row in rows if row.seq <= upto]
    if known != truth.entries[noted.floor.seq : upto]:
        raise Wrong(_first_difference(known, truth.entries[noted.floor.seq : upto]))
    told = rows[len(known) :]
    if upto + len(told) != last or any(row.type not in TOLD for row in told):
        raise Wrong(f"after entry {upto} come {[(row.seq, row.type) for row in told]}, the last is {last}")
    _check_links(told, before=known[-1].chain if known else noted.floor.chain, after=upto)


def _first_difference(rows: list[Written], wanted: list[Written]) -> str:
    if len(rows) != len(wanted):
        return f"{len(rows)} entries where there are {len(wanted)}"
    for row, known in zip(rows, wanted, strict=True):
        if row != known:
            return f"entry {row.seq} isn't what was written"
    return "nothing differs"


def _check_links(rows: Sequence[Written], *, before: bytes, after: int) -> None:
    for row in rows:
        after += 1
        if row.seq != after or row.chain != link(before, row.seq, row.body):
            raise Wrong(f"entry {row.seq} doesn't continue the chain after {after - 1}")
        before = row.chain


def _compare_marks(found: Opened, truth: Truth, upto: int) -> None:
    """A mark that runs ahead of the log would call a stimulus a duplicate that never came in."""
    wanted = truth.marks_upto(upto)
    marks = {(mark.channel, mark.source_id, mark.epoch): mark.high for mark in read_marks(found.connection)}
    wrong = {key: high for key, high in marks.items() if wanted.get(key) != high}
    if wrong or (wanted and not marks):
        raise Wrong(f"marks {marks} where the entries say {wanted}")


def _sealed(session: Path, noted: Catalog) -> list[Written]:
    """What lies in segments, through the product's reader, which checks the chain."""
    rows = LogReader(session).rows(upto=noted.floor.seq)
    gone = {gap.last for gap in noted.gaps}
    return [Written(row.seq, row.type, row.body, b"") for row in rows if row.seq not in gone]


def _compare_sealed(rows: list[Written], truth: Truth, noted: Catalog, *, retired: int) -> None:
    gone = {gap.last for gap in noted.lost if gap.last > retired}
    if gone:
        raise Wrong(f"entries up to {sorted(gone)} are called lost")
    first = max((gap.last for gap in noted.gaps), default=0)
    wanted = [entry._replace(chain=b"") for entry in truth.entries[first : noted.floor.seq]]
    if rows != wanted:
        raise Wrong(f"in segments: {_first_difference(rows, wanted)}")


def _compare_files(session: Path, noted: Catalog, damage: Damage | None) -> None:
    """No file is left over, none is missing, and what was damaged is kept whole."""
    aside = damage.aside if damage else {}
    there = {path.name for path in session.iterdir()}
    if odd := there - {*KNOWN, *MEDIA, *aside, *(EMPTY_ASIDE if damage else ())}:
        raise Wrong(f"left over: {sorted(odd)}")
    segments = {path.name for path in (session / FOLDER).iterdir()} if FOLDER in there else set()
    if segments != {each.name for each in noted.segments}:
        raise Wrong(f"segments {sorted(segments)} where {[each.name for each in noted.segments]} are noted")
    for name, content in aside.items():
        if name not in there or (session / name).read_bytes() != content:
            raise Wrong(f"{name} isn't the log that was damaged")


def _check_actions(rows: Sequence[Written]) -> None:
    """Every block that was started has exactly one result."""
    begun: list[str] = []
    ended: list[str] = []
    for row in rows:
        if row.type.startswith("cognet:action:"):
            action = msgspec.json.decode(row.body)["data"]["action"]
            (begun if row.type == "cognet:action:python" else ended).append(action)
    if len(set(ended)) != len(ended) or set(begun) - set(ended):
        raise Wrong(f"blocks {sorted(begun)} were started, {sorted(ended)} have a result")


def _check_told(rows: Sequence[Written]) -> None:
    """Damage is told in the log, once at least."""
    messages = [msgspec.json.decode(row.body)["data"] for row in rows if row.type == "axon:system:message"]
    if not any(message["type"] == "recovery" and message["facts"]["damage"] for message in messages):
        raise Wrong("damage isn't told in the log")


def _lacks(session: Path, truth: Truth, upto: int) -> str | None:
    """A row whose bytes the media store doesn't have."""
    refs = [msgspec.json.decode(each.body)["data"].get("ref") for each in truth.entries[:upto]] if truth.media else []
    if not any(refs):
        return None
    ring = DiskRing(session, max_bytes=10**9)
    try:
        if ring.set_aside:
            raise Wrong(f"the media store was set aside as {ring.set_aside}")
        for seq, ref in enumerate(refs, 1):
            if ref and ring.get(ref) != truth.media[ref]:
                return f"entry {seq} names bytes that aren't there"
    finally:
        ring.close()
    return None
