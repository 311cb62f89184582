"""An execution over the real log, and a capsule that ends blocks when the test says so."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from capsule.result import BlockError, RunResult
from runtime.abi.entries import decode
from runtime.kernel.execution.execution import Block, Execution
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

SHM = Path("/dev/shm")


class HandCapsule:
    """Executes one run at a time: its blocks are ``asked`` until the test settles them."""

    def __init__(self) -> None:
        self.asked: dict[str, Block] = {}
        self.runs: list[list[str]] = []
        self.began = asyncio.Event()
        self.loses = False
        self._settled: Callable[[str, RunResult], None] | None = None
        self._changed = asyncio.Event()

    async def execute(self, blocks: Sequence[Block], settled: Callable[[str, RunResult], None]) -> None:
        assert self._settled is None, "it was called twice at once"
        self.runs.append([block.code for block in blocks])
        if self.loses:
            return
        self.asked = {block.id: block for block in blocks}
        self._settled = settled
        self.began.set()
        while self.asked:
            self._changed.clear()
            await self._changed.wait()
        self._settled = None
        self.began.clear()

    def interrupt(self, block_ids: Collection[str]) -> None:
        for id_ in block_ids:
            self.settle(id_, RunResult(ok=False, error=BlockError(kind="interrupt", message="by the test")))

    def settle(self, id_: str, result: RunResult) -> None:
        """The outcome of a block."""
        assert self._settled is not None
        del self.asked[id_]
        self._settled(id_, result)
        self._changed.set()

    def settle_all(self) -> None:
        """Each returns its code."""
        for id_, block in list(self.asked.items()):
            self.settle(id_, RunResult(ok=True, value=block.code))


class Bench:
    """What a test looks at."""

    def __init__(self, log: Log, folder: Path) -> None:
        self.log = log
        self.folder = folder
        self.capsule = HandCapsule()
        self._changed = asyncio.Event()
        self.told: list[tuple[str, msgspec.Struct, str | None]] = []
        self.execution = Execution(self.capsule, log=log, timeout_s=5.0, tell=lambda *event: self.told.append(event))
        log.on_admitted = self._admitted

    async def until_written(self, *codes: str) -> None:
        """Return once those actions are admitted."""
        await self.until(lambda: set(codes) <= {entry.data.code for entry in self.entries("cognet:action:python")})

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once something is so, looking after each admission."""
        async with asyncio.timeout(20):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def _admitted(self, rows: list[Any]) -> None:
        self._changed.set()
        if any(row.type == "axon:interrupt" for row in rows):
            self.execution.interrupt()

    def run(self, *codes: Any, wake_id: str | None = "w", cursor: int | None = 0) -> asyncio.Task[list[RunResult]]:
        return asyncio.ensure_future(self.execution.run(codes, wake_id=wake_id, cursor=cursor))

    def entries(self, type_: str = "cognet:action:") -> list[Any]:
        return [decode(row.body, row.seq) for row in self.log.recent(0) if row.type.startswith(type_)]


@pytest.fixture
def folder() -> Iterator[Path]:
    base = tempfile.mkdtemp(prefix="axon-run-", dir=SHM if SHM.is_dir() else None)
    yield Path(base) / "session"
    shutil.rmtree(base)


@pytest.fixture
async def make_bench(folder: Path) -> AsyncIterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**settings: Any) -> Bench:
        log = Log.open(
            folder,
            agent_id="a",
            session_id="s",
            boot_id="b",
            settings=LogSettings(volatile_data=True, **settings),
            media=MemoryRing(max_bytes=1_000_000),
        )
        log.start(asyncio.get_running_loop())
        made.append(Bench(log, folder))
        return made[-1]

    yield make
    for bench in made:
        await bench.execution.close()
        await bench.log.close(clean=True)


@pytest.fixture
async def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


Waits = Callable[[Awaitable[Any]], Awaitable[Any]]


@pytest.fixture
def soon() -> Waits:
    """Awaits what must come, with a generous bound."""
    return lambda awaitable: asyncio.wait_for(awaitable, 20)
