"""The verbs of knowledge: the stage's work in threads, changes in their order, after what they stand on, and traced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from capsule.errors import AxonError
from runtime.abi.clock import mono_us
from runtime.abi.errors import KnowledgeTooLarge, LogBacklogFull
from runtime.abi.knowledge import MAX_CATALOGUE_BYTES, MAX_ENTRY_BYTES, KnowledgeEntry
from runtime.abi.link import Call
from runtime.abi.telemetry import KnowledgeChanged
from runtime.kernel.brain_link import Verb, arguments
from runtime.kernel.narrator import Narrator
from runtime.knowledge.knowledge import Knowledge, chosen
from runtime.log.log import Log

MAX_WAITING_BYTES = 16 * 1024 * 1024
"""What writes that wait for the disk may hold in memory."""
BY_CHARS = 256
REUSE, MAX_REUSE_US = 10, 1_000_000
Limit = Annotated[int, Meta(ge=0)] | None


class _Look(msgspec.Struct, frozen=True):
    """The catalogue, how many changes had been made before, and until when it is as good as a new one."""

    entries: list[KnowledgeEntry]
    changes: int
    until_us: int


class KnowledgeVerbs:
    """Serves the brain by ``verbs`` and people by ``requests``; one thread reads, one writes."""

    def __init__(self, knowledge: Knowledge, *, log: Log, narrator: Narrator, say: Callable[[str], None]) -> None:
        self._knowledge = knowledge
        self._log = log
        self._narrator = narrator
        self._say = say
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="knowledge")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="knowledge-write")
        self._order = asyncio.Lock()
        self._waiting_bytes = 0
        self._changes = 0
        self._look: _Look | None = None

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may ask."""
        return {
            "knowledge.list": self._serve_list,
            "knowledge.read": self._serve_read,
            "knowledge.write": self._serve_write,
            "knowledge.remove": self._serve_remove,
        }

    @property
    def requests(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        """What a person's command may ask."""
        return {"knowledge_write": self._write_for, "knowledge_remove": self._remove_for}

    def start(self) -> None:
        """Remove what cuts in the middle of writes left; returns at once."""
        self._writer.submit(self._sweep)

    async def close(self) -> None:
        """Finish what was begun; what still waits isn't begun any more."""
        for thread in (self._writer, self._reader):
            await asyncio.to_thread(thread.shutdown, wait=True, cancel_futures=True)

    async def _serve_list(self, call: Call, _: Callable[[Any], None]) -> Any:
        match, limit = arguments(call, tuple[str, Limit])
        return await self._read(partial(self._catalogue, match, limit))

    async def _serve_read(self, call: Call, _: Callable[[Any], None]) -> str:
        (name,) = arguments(call, tuple[str])
        content: str = await self._read(partial(self._knowledge.read, name))
        return content

    async def _serve_write(self, call: Call, _: Callable[[Any], None]) -> None:
        name, content = arguments(call, tuple[str, str])
        await self.write(name, content.encode(), wake_id=call.wake_id)

    async def _serve_remove(self, call: Call, _: Callable[[Any], None]) -> None:
        (name,) = arguments(call, tuple[str])
        await self.remove(name, wake_id=call.wake_id)

    async def _write_for(self, name: str, content: bytes, by: str) -> None:
        await self.write(name, content, by=by)

    async def _remove_for(self, name: str, by: str) -> dict[str, bool]:
        return {"removed": await self.remove(name, by=by)}

    async def write(self, name: str, content: bytes, *, by: str = "", wake_id: str | None = None) -> None:
        """Replace an entry; resolves when it is durable. ``by`` names the person, "" the brain."""
        if len(content) > MAX_ENTRY_BYTES:
            raise KnowledgeTooLarge(
                f"{len(content):,} bytes, more than {MAX_ENTRY_BYTES:,} for one entry", size_bytes=len(content)
            )
        if self._waiting_bytes + len(content) > MAX_WAITING_BYTES:
            raise LogBacklogFull("too much knowledge waits to be written", hint="Await some writes before the next.")
        self._waiting_bytes += len(content)
        try:
            await self._change("write", name, partial(self._knowledge.write, name, content), by=by, wake_id=wake_id)
        finally:
            self._waiting_bytes -= len(content)

    async def remove(self, name: str, *, by: str = "", wake_id: str | None = None) -> bool:
        """Remove an entry; resolves when that is durable; False when there was none."""
        work = partial(self._knowledge.remove, name)
        return await self._change("remove", name, work, by=by, wake_id=wake_id) is not False

    async def _change(
        self, what: str, name: str, work: Callable[[], bool | None], *, by: str, wake_id: str | None
    ) -> bool | None:
        """In the order of the calls, and not before the entries that it stands on are durable.

        Once begun it is finished and traced, whether or not anybody still waits.
        """
        seq = self._log.last_seq
        async with self._order:
            await self._log.durable(seq)
            done = asyncio.get_running_loop().run_in_executor(self._writer, self._changed, work)
            done.add_done_callback(partial(self._trace, what, name, by, wake_id))
        return await asyncio.shield(done)

    def _changed(self, work: Callable[[], bool | None]) -> bool | None:
        try:
            return work()
        finally:
            self._changes += 1

    def _trace(self, what: str, name: str, by: str, wake_id: str | None, done: asyncio.Future[bool | None]) -> None:
        """Once it is done. The name alone: the log says that memory has changed, and holds no second copy of it."""
        if not done.cancelled() and done.exception() is None and done.result() is not False:
            changed = KnowledgeChanged(name=name, by=by[:BY_CHARS])
            self._narrator.tell(f"cognet:knowledge:{what}", changed, wake_id)

    async def _read(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._reader, work)

    def _catalogue(self, match: str, limit: int | None) -> msgspec.Raw:
        """Encoded here, in the thread: thousands of entries would keep the loop from its other work."""
        found = chosen(self._looked(), match=match, limit=limit)
        encoded = msgspec.msgpack.encode(found)
        if len(encoded) > MAX_CATALOGUE_BYTES:
            raise KnowledgeTooLarge(
                f"the catalogue of these {len(found):,} entries has {len(encoded):,} bytes, "
                f"more than {MAX_CATALOGUE_BYTES:,} for one answer",
                size_bytes=len(encoded),
            )
        return msgspec.Raw(encoded)

    def _looked(self) -> list[KnowledgeEntry]:
        """The whole catalogue. A look is used again for ten times as long as it took, unless a change was made here.

        So a brain that lists thousands of entries at every tick costs a tenth of a processor, and not all of it.
        """
        changes, began = self._changes, mono_us()
        if self._look is None or self._look.changes != changes or began >= self._look.until_us:
            found = self._knowledge.catalogue()
            now = mono_us()
            self._look = _Look(found, changes, now + min(REUSE * (now - began), MAX_REUSE_US))
        return self._look.entries

    def _sweep(self) -> None:
        try:
            self._knowledge.sweep()
        except (AxonError, OSError) as error:
            self._say(f"[kernel] what cuts left in knowledge/ stays there: {error}")
