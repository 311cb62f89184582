"""Every wake takes a minute, so that wakes overlap until somebody interrupts them."""

import asyncio

from runtime import every, kernel, loop, on


@on("boot")
async def begin() -> None:
    every(1 / 10, kernel.wake)


@loop
async def think(wake) -> None:
    await asyncio.sleep(60)
    wake.stop()
