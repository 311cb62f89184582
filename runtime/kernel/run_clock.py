"""When a run counts: from the brain being up and every driver having delivered once, for as long as was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

READY_S = 10.0
LOOK_S = 0.02


async def until_ready(ready: Callable[[], bool], *, brain_up: asyncio.Event, stopping: asyncio.Event) -> None:
    """Wait for the brain, then for every driver; ten seconds later it counts all the same."""
    await _first(brain_up.wait(), stopping.wait())
    try:
        async with asyncio.timeout(READY_S):
            while not ready() and not stopping.is_set():  # noqa: ASYNC110 (a few looks at counters, once a run)
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        pass  # the summary shows which channel is missing


async def count(for_s: float | None, *, stopping: asyncio.Event) -> None:
    """Let the run last ``for_s`` seconds, or until it is told to stop."""
    if for_s is None:
        await stopping.wait()
        return
    try:
        async with asyncio.timeout(for_s):
            await stopping.wait()
    except TimeoutError:
        pass  # the time is over, as asked


async def _first(*awaitables: object) -> None:
    tasks = [asyncio.ensure_future(a) for a in awaitables]  # type: ignore[call-overload]  # coroutines of one type
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
