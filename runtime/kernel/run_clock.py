"""When a run counts: from the brain being up and every driver having delivered once, for as long as was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

READY_S = 10.0
LOOK_S = 0.02


async def until_ready(ready: Callable[[], bool], *, stopping: asyncio.Event) -> None:
    """Wait until all is up; after ten seconds it counts all the same, and the summary shows what is missing."""
    try:
        async with asyncio.timeout(READY_S):
            while not ready() and not stopping.is_set():  # noqa: ASYNC110 (a few looks at counters, once a run)
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return


async def count(for_s: float | None, *, stopping: asyncio.Event) -> None:
    """Let the run last ``for_s`` seconds, or until it is told to stop."""
    try:
        async with asyncio.timeout(for_s):
            await stopping.wait()
    except TimeoutError:
        return
