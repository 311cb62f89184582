"""One call of ``run``: its blocks, how far each of them is, and the results in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from capsule.result import RunResult
from runtime.abi.errors import CallInvalid
from runtime.abi.ids import uuid7
from runtime.kernel.execution.outcome import refused

MAX_BLOCKS = 64
"""Of one call: what runs at once shares one interpreter and a few cores."""
MAX_CODE = 200_000


class BlockRun:
    """A block from its call to its result; ``id`` names its action."""

    __slots__ = ("began_us", "code", "id", "is_recorded", "is_running", "result")

    def __init__(self, code: str) -> None:
        self.id = uuid7()
        self.code = code
        self.is_recorded = False
        """Whether its action is in the log, which then wants a result."""
        self.is_running = False
        """Whether the capsule has it."""
        self.began_us = 0
        self.result: RunResult | None = None


class Run:
    """The blocks of one call; ``done`` resolves with their results when the last has one."""

    def __init__(self, codes: Sequence[Any], *, wake_id: str | None, cursor: int | None) -> None:
        self.wake_id = wake_id
        self.cursor = cursor
        self.blocks = [BlockRun(code if isinstance(code, str) else "") for code in codes]
        self.done: asyncio.Future[list[RunResult]] = asyncio.get_running_loop().create_future()
        for block, code in zip(self.blocks, codes, strict=True):
            block.result = _refusal(code)
        self.finish()

    @property
    def open(self) -> list[BlockRun]:
        """The blocks that have no result yet."""
        return [block for block in self.blocks if block.result is None]

    def find(self, block_id: str) -> BlockRun | None:
        """The open block of that id."""
        return next((block for block in self.open if block.id == block_id), None)

    def finish(self) -> None:
        """Resolve ``done`` if nothing is open."""
        if not self.open and not self.done.done():
            self.done.set_result([block.result for block in self.blocks if block.result is not None])


def _refusal(code: Any) -> RunResult | None:
    """What is wrong with a block before it is looked at by anybody."""
    if not isinstance(code, str):
        return refused(CallInvalid(f"run takes blocks of Python as str, not {type(code).__name__}"))
    if len(code) > MAX_CODE:
        return refused(CallInvalid(f"a block has at most {MAX_CODE:,} characters, not {len(code):,}"))
    return None
