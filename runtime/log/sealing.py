"""The thread that moves old entries into segments and retires the oldest of those, beside the writer.

It reads by short reads on connections of its own and writes files; what the log notes of them it asks the writer to
do. Cut anywhere: a file that isn't noted is removed at the next opening, one that is noted is there, rows that are
sealed and still live are deleted by the writer, files of segments that were retired are removed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, BinaryIO

import apsw
import msgspec

from capsule.errors import AxonError
from runtime.abi.entries import EntryContext
from runtime.abi.errors import LogDamaged
from runtime.durable.database import one_view
from runtime.durable.files import make_folder, remove_durable, sync_data, writing_durable
from runtime.durable.space import free_bytes
from runtime.log import catalog, chain, retention, segment
from runtime.log.archive import Archive
from runtime.log.catalog import Catalog, Sealed
from runtime.log.readers import Readers
from runtime.log.retention import Bounds
from runtime.log.segment import BLOCK_ENTRIES, file_name

LOOK_S = 2.0
"""How often the sizes are looked at."""
REST = 1.0
"""After each block the thread sleeps for as long as it took, times this: half a core at most; a slow disk rests."""
SYNC_BYTES = 1024 * 1024
"""So much of a file is synced at once: one long sync would hold up the commits of the log."""
KEEP_ENTRIES = 1024
"""At least so many of the newest entries stay live, whatever the bounds say."""
SAMPLES = 8
LARGEST = 2
"""A segment holds at most so many times the bytes that may be live."""

Act = Callable[[apsw.Connection], None]


class SealSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When entries are sealed (0: never for that reason), and which bounds their segments keep."""

    bytes: int
    age_s: float
    keep_entries: int
    bounds: Bounds


class Sealing:
    """``start`` and ``stop`` it; ``retired(last seq)`` and ``failed(reason, seq)`` are called in its thread."""

    def __init__(
        self,
        session: Path,
        *,
        context: EntryContext,
        settings: SealSettings,
        readers: Readers,
        ask: Callable[[Act], Future[None]],
        durable: Callable[[], int],
    ) -> None:
        self._archive = Archive(session)
        self._context = context
        self._settings = settings
        self._readers = readers
        self._ask = ask
        self._durable = durable
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-sealing", daemon=True)
        self._began = time.monotonic()
        self._aged_before: float | None = None
        self._noted: Catalog | None = None
        self._counted = 0  # entries up to here are in the live bytes
        self._live_bytes = 0
        self._samples: deque[tuple[float, int]] = deque()  # when, and the last entry durable then
        self.retired: Callable[[int], None] = lambda _last: None
        self.failed: Callable[[str, int | None], None] = lambda _reason, _seq: None
        self.sealed_entries = 0

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; what it was writing is left out."""
        self._over.set()

    def join(self) -> None:
        """Wait for its end. Blocks."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause_s = LOOK_S
        while not self._over.wait(pause_s):
            try:
                while self.look() and not self._over.is_set():
                    pass
                pause_s = LOOK_S
            except LogDamaged as damage:  # what doesn't hold is never sealed; the next opening repairs it
                self.failed(damage.message, damage.facts.get("seq"))
                return
            except (apsw.Error, OSError, AxonError) as error:
                self._noted = None
                self.failed(str(error), None)
                pause_s = min(2 * pause_s, 30 * LOOK_S)
            except CancelledError:
                return

    def look(self) -> bool:
        """Do one thing that is due; False when nothing was. Blocks."""
        noted = self._read_notes()
        if self._retire(noted):
            return True
        upto = self._upto(noted)
        if upto:
            self._seal(noted, upto)
        return bool(upto)

    def _read_notes(self) -> Catalog:
        """All of them after a change, which only this thread makes; else the floor alone, which the writer moves."""
        with self._readers.lend() as connection, one_view(connection):
            if self._noted is None:
                self._noted = catalog.read(connection)
            else:
                self._noted = msgspec.structs.replace(self._noted, floor=catalog.read_floor(connection))
        return self._noted

    def _change(self, act: Act) -> None:
        self._noted = None
        self._ask(act).result()

    # -- sealing -----------------------------------------------------------------------------------

    def _upto(self, noted: Catalog) -> int:
        """The last entry to be sealed now; 0 when none is due."""
        durable, first = self._durable(), max(self._sealed(noted), noted.floor.seq)
        limit = durable - max(self._settings.keep_entries, KEEP_ENTRIES)
        self._count(first, durable)
        upto = 0
        if self._settings.bytes and self._live_bytes > self._settings.bytes:
            upto = self._half(first, limit)
        return max(upto, min(self._aged_upto(durable), limit)) if limit > first else 0

    def _sealed(self, noted: Catalog) -> int:
        return max((each.last for each in noted.pieces), default=0)

    def _count(self, first: int, durable: int) -> None:
        """Keep account of the bytes of live bodies, a part at a time."""
        self._counted = max(self._counted, first)
        while self._counted < durable and not self._over.is_set():
            part = min(self._counted + 20_000, durable)
            self._live_bytes += self._bytes(self._counted, part)
            self._counted = part

    def _bytes(self, after: int, upto: int) -> int:
        with self._readers.lend() as connection:
            total = "SELECT ifnull(sum(length(body)), 0) FROM entry WHERE seq > ? AND seq <= ?"
            return int(connection.execute(total, (after, upto)).get)

    def _half(self, first: int, limit: int) -> int:
        """Whole blocks from the oldest entry on, until half of the bytes allowed are left; not without end."""
        upto, taken = first, 0
        goal = min(self._live_bytes - self._settings.bytes // 2, LARGEST * self._settings.bytes)
        while upto + BLOCK_ENTRIES <= limit and taken < goal:
            taken += self._bytes(upto, upto + BLOCK_ENTRIES)
            upto += BLOCK_ENTRIES
        return upto if upto > first else 0

    def _aged_upto(self, durable: int) -> int:
        """By the monotonic clock: what was durable half an age ago, once something has been live for a whole one."""
        age_s, now = self._settings.age_s, time.monotonic()
        if not age_s:
            return 0
        if not self._samples or now - self._samples[-1][0] >= age_s / SAMPLES:
            self._samples.append((now, durable))
        if now - self._samples[0][0] < age_s:
            return 0
        upto = 0
        while self._samples and now - self._samples[0][0] >= age_s / 2:
            upto = self._samples.popleft()[1]
        return upto

    def _seal(self, noted: Catalog, upto: int) -> None:
        """The file, durable; then the note; the writer deletes the rows bit by bit."""
        first = self._sealed(noted)
        before = noted.pieces[-1].chain if noted.pieces else chain.GENESIS  # its row may be deleted any moment
        make_folder(self._archive.folder)
        path = self._archive.folder / file_name(first + 1, upto)
        actions = _Actions()
        with writing_durable(path) as file:
            blocks = self._blocks(file, first, upto, actions)
            footer, digest = segment.write(file, blocks, session_id=self._context.session_id, before=before)
        if self._over.is_set():
            raise CancelledError
        sealed = Sealed(
            footer.first,
            footer.last,
            footer.before,
            footer.chain,
            path.stat().st_size,
            digest,
            footer.types,
            self._aged(noted),
        )
        self._change(lambda connection: _note(connection, sealed, actions))
        self._live_bytes = max(self._live_bytes - footer.body_bytes, 0)
        self.sealed_entries += upto - first

    def _blocks(self, file: BinaryIO, after: int, upto: int, actions: _Actions) -> Iterator[list[chain.Raw]]:
        """The rows, each block by a short read of its own, at a pace that leaves the machine to others."""
        synced = 0
        while after < upto:
            if self._over.is_set():
                raise CancelledError
            began = time.monotonic()
            with self._readers.lend() as connection:
                rows: Any = connection.execute(
                    f"SELECT {chain.COLUMNS} FROM entry WHERE seq > ? AND seq <= ? ORDER BY seq",
                    (after, min(after + BLOCK_ENTRIES, upto)),
                ).fetchall()
            if len(rows) != min(BLOCK_ENTRIES, upto - after):
                raise LogDamaged(f"an entry above {after} is missing", seq=after + 1)
            actions.take(rows)
            yield rows
            after = rows[-1][0]
            if file.tell() - synced >= SYNC_BYTES:
                sync_data(file)
                synced = file.tell()
            self._over.wait(REST * (time.monotonic() - began))

    # -- retention ---------------------------------------------------------------------------------

    def _retire(self, noted: Catalog) -> bool:
        """Note that the oldest segments are gone, then remove their files."""
        live = [each for each in noted.segments if each.last <= noted.floor.seq]
        free = free_bytes(self._archive.folder.parent)
        count = retention.due(live, self._settings.bounds, free_bytes=free, aged_s=self._aged(noted))
        if not count:
            return False
        gap = retention.retired(noted, count, context=self._context)
        self._change(lambda connection: catalog.put_gap(connection, gap))
        self.retired(gap.last)
        for each in live[:count]:
            remove_durable(self._archive.folder / each.name)
        return True

    def _aged(self, noted: Catalog) -> float:
        """The session's running time, as far as seals told of it: no step of the wall clock makes entries older."""
        if self._aged_before is None:
            self._aged_before = max((each.aged_s for each in noted.segments), default=0.0)
        return self._aged_before + time.monotonic() - self._began


class _Actions:
    """Blocks that were started, and results, in the rows that are being sealed."""

    def __init__(self) -> None:
        self.opened: dict[str, tuple[int, bytes]] = {}
        self.closed: set[str] = set()

    def take(self, rows: list[chain.Raw]) -> None:
        for seq, type_, body, _ in rows:
            if type_ == b"cognet:action:python":
                self.opened[catalog.action_of(body, seq)] = (seq, body)
            elif type_ == b"cognet:action:result":
                action = catalog.action_of(body, seq)
                if self.opened.pop(action, None) is None:
                    self.closed.add(action)


def _note(connection: apsw.Connection, sealed: Sealed, actions: _Actions) -> None:
    catalog.put_segment(connection, sealed)
    catalog.carry(connection, opened=actions.opened, closed=actions.closed)
