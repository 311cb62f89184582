"""A real capsule: the sandboxed guest and the kernel's end of it, for blocks of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from capsule.protocol import ToolCall
from capsule.result import RunResult
from capsule.sandbox.plan import Bind
from capsule.scope import AxonScope
from runtime.kernel.capsule.capsule import Capsule
from runtime.kernel.capsule.incarnation import Shape
from runtime.kernel.execution.execution import Block
from runtime.kernel.supervisor import Supervisor

LIMIT_S = 40.0


class Bench:
    """Executes blocks in one capsule; ``told`` and ``said`` are what the kernel would hear."""

    def __init__(self, *, binds: Sequence[Bind] = (), **shape: Any) -> None:
        self.told: list[tuple[str, Any]] = []
        self.said: list[str] = []
        self.tool: Callable[[ToolCall], Awaitable[Any]] = self._no_tool
        self.supervisor = Supervisor(tell=self._tell, say=self.said.append)
        self.capsule = Capsule(
            Shape(**{"sandboxed": True, "memory_bytes": 256_000_000, "binds": list(binds), **shape}),
            supervisor=self.supervisor,
            call_tool=lambda call: self.tool(call),
            tell=self._tell,
        )
        self.capsule.start()
        self._count = 0

    def _tell(self, type_: str, data: msgspec.Struct) -> None:
        self.told.append((type_, data))

    async def _no_tool(self, call: ToolCall) -> Any:
        raise AssertionError(f"nobody expected {call}")

    @property
    def incarnations(self) -> int:
        """How many served, one after another."""
        return sum(type_ == "kernel:process:started" and data.name == "capsule" for type_, data in self.told)

    def scope(self, scope: AxonScope) -> None:
        """What blocks can import."""
        self.capsule.scope_changed(scope)

    async def run(self, *codes: str, timeout_s: float = 20.0) -> list[RunResult]:
        """One run; each block settles exactly once."""
        blocks, results = self.blocks(*codes, timeout_s=timeout_s), dict[str, RunResult]()
        async with asyncio.timeout(LIMIT_S):
            await self.capsule.execute(blocks, lambda id_, result: self._settled(results, id_, result))
        return [results[block.id] for block in blocks]

    async def one(self, code: str, *, timeout_s: float = 20.0) -> RunResult:
        """A lone block."""
        return (await self.run(code, timeout_s=timeout_s))[0]

    def blocks(self, *codes: str, timeout_s: float = 20.0) -> list[Block]:
        """Blocks with ids of their own."""
        made = []
        for code in codes:
            self._count += 1
            made.append(Block(id=f"block-{self._count}", code=code, timeout_s=timeout_s))
        return made

    @staticmethod
    def _settled(results: dict[str, RunResult], id_: str, result: RunResult) -> None:
        assert id_ not in results, "a block settled twice"
        results[id_] = result

    async def close(self) -> None:
        """End its processes."""
        for name in ("capsule", "capsule.spare"):
            await self.supervisor.end(name, grace_s=0.1)


@pytest.fixture(scope="session")
def bench() -> type[Bench]:
    """For a module that keeps one capsule for many tests."""
    return Bench


@pytest.fixture
async def make_capsule() -> AsyncIterator[Callable[..., Bench]]:
    """Make a capsule with a shape of its own."""
    made: list[Bench] = []

    def make(**shape: Any) -> Bench:
        made.append(Bench(**shape))
        return made[-1]

    yield make
    for bench in made:
        await bench.close()


@pytest.fixture
async def capsule(make_capsule: Callable[..., Bench]) -> Bench:
    """A sandboxed capsule."""
    return make_capsule()
