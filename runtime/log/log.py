"""The session log as the kernel sees it: admit on the loop, durable a moment later, read beside it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from capsule.errors import AxonError
from runtime.abi.clock import mono_us
from runtime.abi.entries import EntryContext
from runtime.abi.errors import KernelStopping, LogBacklogFull, LogDamaged, StorageFailed
from runtime.abi.link import PAGE_ENTRIES, Page, Row
from runtime.abi.telemetry import Fact, TelemetryEvent
from runtime.durable.locks import FileLock
from runtime.durable.space import Reserve
from runtime.log import catalog, pages, schema
from runtime.log.archive import Archive
from runtime.log.chain import GENESIS
from runtime.log.narration import Narration
from runtime.log.pending import Batch, Haste, Pending
from runtime.log.projection import Projection
from runtime.log.readers import Readers
from runtime.log.recovery import Opened, open_log
from runtime.log.retention import Bounds
from runtime.log.sealing import Sealing, SealSettings
from runtime.log.settings import (
    MAX_BACKLOG_BYTES,
    MAX_OUTPUT_RESERVE_BYTES,
    MAX_RESERVED_BACKLOG_BYTES,
    RESERVE_NAME,
    Flushes,
    LogSettings,
    Mark,
    Recovery,
    State,
)
from runtime.log.storage import Storage
from runtime.log.waiting import Told, Waiting
from runtime.log.writer import Writer


class Log:
    """One session's log, opened for writing. Methods are for the loop's thread unless they say otherwise.

    The kernel sets ``on_admitted`` and ``on_durable`` (rows in ``seq`` order) ``on_state``, ``on_space`` (True: the
    disk is full, only ``reserve`` is admitted) and ``on_retired`` (``first_seq`` moved), called on the loop;
    ``on_page`` and ``on_page_refused`` are called in the threads that serve pages.
    """

    def __init__(self, opened: Opened, *, folder: Path, settings: LogSettings, media: Flushes) -> None:
        admission = opened.admission
        path = folder / schema.FILE_NAME
        self.folder = folder
        self.recovery: Recovery = opened.recovery
        self.marks: list[Mark] = opened.marks
        self.context: EntryContext = admission.context
        self.first_seq: int = opened.first_seq
        self.durable_seq: int = admission.last_seq
        self.state: State = "ok"
        self.reason = ""
        self.low_space = False
        self.on_admitted: Callable[[list[Row]], None] = lambda _rows: None
        self.on_durable: Callable[[list[Row]], None] = lambda _rows: None
        self.on_state: Callable[[State, str], None] = lambda _state, _reason: None
        self.on_space: Callable[[bool], None] = lambda _low: None
        self.on_retired: Callable[[int], None] = lambda _first_seq: None
        self.on_page: Callable[[], None] = lambda: None
        self.on_page_refused: Callable[[str], None] = lambda _reason: None
        self._lock: FileLock = opened.lock
        self._admission = admission
        self._projection = Projection(
            opened.tail, after=admission.last_seq - len(opened.tail), window=settings.window_entries
        )
        self._pending = Pending(interval_s=settings.commit_interval_ms / 1000)
        self._narration = Narration(keep_events=settings.telemetry_events)
        self._readers = Readers(path, vfs=settings.vfs)
        storage = Storage(
            path,
            narration=self._narration,
            readers=self._readers,
            sync_delay_s=settings.sync_delay_ms / 1000,
            vfs=settings.vfs,
        )
        storage.adopt(opened.connection, boot=opened.boot)
        self._writer = Writer(
            storage,
            pending=self._pending,
            narration=self._narration,
            media=media,
            held=self._projection.after,
            durable=(admission.last_seq, admission.last_chain),
            reserve=Reserve(folder / RESERVE_NAME),
        )
        self._archive = Archive(folder)
        self._sealing = Sealing(
            folder,
            context=self.context,
            settings=_seal_settings(settings),
            readers=self._readers,
            ask=self._writer.ask,
            durable=lambda: self._writer.durable_seq,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._backlog_bytes = 0
        self._reserve_bytes = 0  # of entries since the disk is full
        self._waiting = Waiting()
        self._turn = Batch()  # admitted in this turn of the loop
        self._hastes: set[Haste] = set()
        self._handing_over = False
        self._closing = False
        self._ended: asyncio.Event = asyncio.Event()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        agent_id: str,
        session_id: str,
        boot_id: str,
        settings: LogSettings,
        media: Flushes,
    ) -> Self:
        """Open or make the log in a session's folder, and recover it. Blocks: before the loop runs.

        Raises ``SqliteUnsupported``, ``StorageUnsupported``, ``SessionLocked``, ``LogVersion``, ``StorageFailed``.
        """
        context = EntryContext(agent_id=agent_id, session_id=session_id, boot_id=boot_id)
        return cls(open_log(folder, context=context, settings=settings), folder=folder, settings=settings, media=media)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the writer's thread; it reports to this loop."""
        self._loop = loop
        post = loop.call_soon_threadsafe
        self._writer.settled = lambda seq, size_bytes: _post(post, self._settle, seq, size_bytes)
        self._writer.changed = lambda state, reason: _post(post, self._change, state, reason)
        self._writer.low = lambda low: _post(post, self._set_low_space, low)
        self._writer.ended = lambda: _post(post, self._ended.set)
        self._writer.start()
        self._sealing.retired = lambda last: _post(post, self._retire, last)
        self._sealing.failed = self._sealing_failed
        self._sealing.start()

    @property
    def last_seq(self) -> int:
        """The last entry admitted."""
        return self._admission.last_seq

    def admit(
        self,
        type_: str,
        data: object,
        *,
        wake_id: str | None = None,
        cursor: int | None = None,
        mark: Mark | None = None,
        urgent: bool = False,
        patient: bool = False,
        reserve: bool = False,
        last: bool = False,
    ) -> Row:
        """Take an entry: it has its ``seq`` and is seen at once, and becomes durable soon. Memory only.

        ``data`` is the type's struct, or plain values to be validated. ``mark`` becomes durable with the entry.
        ``urgent`` isn't held by ``commit_interval_ms``, and is taken on a full disk when outputs no longer are;
        ``patient``, an urgent one waits two milliseconds for what may be admitted next;
        ``reserve`` may use the room kept for outputs, interrupts and stops, in memory and on a full disk. ``last``:
        nothing more comes in this turn of the loop, so the writer has it before anybody is told. Raises
        ``EntryTypeUnknown``, ``EntryInvalid``, ``EntryTooLarge``, ``LogBacklogFull``, ``KernelStopping``; then
        nothing was taken.
        """
        if self._closing:
            raise KernelStopping("the log is closing")
        if self.low_space and not (urgent or (reserve and self._reserve_bytes < MAX_OUTPUT_RESERVE_BYTES)):
            raise LogBacklogFull(self._writer.low_reason, hint="End that, or free space; recording resumes by itself.")
        body = self._admission.body(type_, data, wake_id=wake_id, cursor=cursor)
        backlog = self._backlog_bytes + len(body)
        if backlog > (MAX_RESERVED_BACKLOG_BYTES if reserve else MAX_BACKLOG_BYTES):
            raise LogBacklogFull(f"{self._backlog_bytes} bytes wait for the disk", waiting_bytes=self._backlog_bytes)
        self._backlog_bytes = backlog
        self._reserve_bytes = self._reserve_bytes + len(body) if self.low_space else 0
        row, link = self._admission.place(type_, body)
        self._projection.append(row)
        self._turn.add(row, link, mark)
        self._hastes.add((Haste.PATIENT if patient else Haste.URGENT) if urgent else Haste.USUAL)
        if last:
            self.hand_over()
        elif not self._handing_over:
            self._hand_over_soon()
        self.on_admitted([row])
        return row

    def hand_over(self) -> None:
        """Give the writer what was admitted, before the turn of the loop ends: this was all of it."""
        batch, self._turn = self._turn, Batch()
        hastes, self._hastes = self._hastes, set()
        if batch.columns:
            self._pending.add(batch, hastes)

    def transient(self, type_: str, data: object) -> Row:
        """The row of an entry that no log keeps: ``seq`` 0, validated and stamped like any other."""
        return Row(0, type_, self._admission.body(type_, data))

    def durable(self, seq: int) -> asyncio.Future[None]:
        """Resolves when the entry is on the disk; ``StorageFailed`` when the storage failed, at once if it has."""
        future: asyncio.Future[None] = (self._loop or asyncio.get_running_loop()).create_future()
        self.when_durable(seq, lambda error: _resolve(future, error))
        return future

    def when_durable(self, seq: int, told: Told) -> None:
        """``durable`` without a turn of the loop between: ``told`` is called where it becomes known, perhaps now."""
        if seq <= self.durable_seq:
            told(None)
        elif self.state == "failed":
            told(self._failure())
        else:
            self._waiting.add(seq, told)

    def tell(self, event: TelemetryEvent) -> None:
        """Keep a telemetry event; it is stored with a later commit of entries. Any thread."""
        self._narration.tell(event)

    @property
    def telemetry_dropped(self) -> int:
        """Events that found no room in memory since this boot."""
        return self._narration.dropped

    def recent(self, after: int) -> list[Row]:
        """The rows in memory above ``after``: at least all that isn't durable. Any thread."""
        return self._projection.after(after)

    def page(self, *, after: int, upto: int, limit: int = PAGE_ENTRIES) -> Page:
        """Entries above ``after``, none above ``upto``; count 0 at the end. Blocks; any thread but the loop's.

        Entries that were retired, or lost to damage, are told by one in the place of the last of them.
        Raises ``LogDamaged``, ``StorageFailed``, ``apsw.Error``.
        """
        after = min(max(after, 0), 2**62)
        upto = min(upto, self.last_seq)
        limit = max(min(limit, upto - after), 0)
        if not limit or after + 1 >= max(self._projection.first_seq, self.first_seq):
            rows = self._projection.after(after, limit)
            if not rows or rows[0].seq == after + 1:  # else it was trimmed meanwhile
                return pages.resident_page(rows, after)
        try:
            with self._readers.lend() as connection:
                return pages.read_page(connection, self._archive, after=after, upto=upto, limit=limit)
        except LogDamaged as error:
            self._writer.suspect = error.facts["seq"]
            raise

    def serve_pages(self, sock: socket.socket) -> threading.Thread:
        """Answer a brain's page requests on that socket until it leaves, in a thread of its own."""
        service = pages.PageService(
            lambda after, upto, limit: self.page(after=after, upto=upto, limit=limit),
            served=lambda: self.on_page(),
            refused=lambda reason: self.on_page_refused(reason),
        )
        thread = threading.Thread(target=service.serve, args=(sock,), name="log-pages", daemon=True)
        thread.start()
        return thread

    def last_of_type(self, type_: str) -> int:
        """The last durable entry of a type, retired ones too, 0 if none. Blocks; quick for actions and ``axon:*``."""
        rare = f"AND {schema.RARE}" if type_ < "cognet:b" else ""
        with self._readers.lend() as connection:
            seq = connection.execute(
                f"SELECT seq FROM entry WHERE type = ? {rare} ORDER BY seq DESC LIMIT 1", (type_,)
            ).get or catalog.last_of_type(connection, type_)
        return int(seq or 0)

    def chain_at(self, seq: int) -> str:
        """The chain up to a durable entry, in hex; "" when the log doesn't hold it. Blocks; a thread."""
        with self._readers.lend() as connection:
            found = pages.chain_at(connection, self._archive, seq)
        return "" if found is None else found.hex()

    def holds(self, seq: int, chain_hex: str) -> bool:
        """Whether the log has that entry with that history before it. Blocks; a thread."""
        return (GENESIS.hex() if seq <= 0 else self.chain_at(seq)) == chain_hex != ""

    def commit_times(self) -> list[float]:
        """How long each transaction since the last call took, in seconds; the newest 100,000."""
        times = self._writer.commit_s
        return [times.popleft() for _ in range(len(times))]

    async def close(self, *, clean: bool) -> None:
        """Write what is left, mark this boot clean if it is, and let go of the file. Admits no more."""
        self._closing = True
        self._sealing.stop()
        self.hand_over()
        self._writer.clean = clean
        self._pending.close()
        if self._loop is None:
            self._writer.start()  # opened and never started: it still has an end to write
            await asyncio.to_thread(self._writer.join)
        else:
            await self._ended.wait()
            await asyncio.to_thread(self._sealing.join)
        self._readers.close()
        self._waiting.fail(KernelStopping("the log closed before this was durable"))
        self._lock.release()

    def _hand_over_soon(self) -> None:
        """The writer gets what one turn of the loop admits at once: it would find the interpreter busy before."""
        if self._loop is None:
            self.hand_over()
        else:
            self._handing_over = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._handing_over = False
        self.hand_over()

    def _settle(self, seq: int, size_bytes: int) -> None:
        """Rows up to here are on the disk: tell those who wait, in order."""
        rows = self._projection.after(self.durable_seq, seq - self.durable_seq)
        self._backlog_bytes -= size_bytes
        self.durable_seq = seq
        self._waiting.settle(seq)
        self._projection.trim(seq)
        self.on_durable(rows)

    def _change(self, state: State, reason: str) -> None:
        self.state, self.reason = state, reason
        if state == "failed":
            self._waiting.fail(self._failure())
        self.on_state(state, reason)

    def _retire(self, last: int) -> None:
        self.first_seq = last + 1
        note = Fact(message="the oldest entries were removed", facts={"last_seq": last})
        event = TelemetryEvent(type="kernel:log:retired", mono_us=mono_us(), after_seq=self.last_seq, data=note)
        self._narration.tell(event)
        self.on_retired(self.first_seq)

    def _sealing_failed(self, reason: str, seq: int | None) -> None:
        """In its thread. Nothing is lost by it: entries stay live, and it is tried again unless they don't hold."""
        if seq is not None:
            self._writer.suspect = seq
        note = Fact(message="entries couldn't be sealed", facts={"reason": reason, "seq": seq})
        event = TelemetryEvent(type="kernel:log:sealing", mono_us=mono_us(), after_seq=self.durable_seq, data=note)
        self._narration.tell(event)

    def _set_low_space(self, low: bool) -> None:  # noqa: FBT001 - posted from the writer's thread
        self.low_space = low
        self.on_space(low)

    def _failure(self) -> StorageFailed:
        return StorageFailed(f"the log can't be written: {self.reason}", state=self.state)


def _seal_settings(settings: LogSettings) -> SealSettings:
    return SealSettings(
        bytes=settings.seal_bytes,
        age_s=settings.seal_age_s,
        keep_entries=settings.window_entries,
        bounds=Bounds(bytes=settings.retain_bytes, age_s=settings.retain_age_s, min_free_bytes=settings.min_free_bytes),
    )


def _resolve(future: asyncio.Future[None], error: AxonError | None) -> None:
    if future.done():
        return  # its caller was cancelled
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _post(post: Callable[..., object], callback: Callable[..., None], *args: object) -> None:
    """A loop that was closed without closing the log has nobody left to tell."""
    try:
        post(callback, *args)
    except RuntimeError:
        return
