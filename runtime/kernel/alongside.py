"""Background work of a connection: it runs as long as the block does, and its failure is the block's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from runtime.abi.errors import BrokerUnavailable


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run ``work`` until the block ends. A lost broker ends both: the block hears of it by itself."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, BrokerUnavailable):
            raise error
