"""One wake that emits five hundred values, one after another, and reports how long each took."""

import asyncio
import json
import time

from runtime import kernel, loop, on

COUNT = 500
SETTLING_S = 1.5
"""What starts beside it has started by then."""


@on("boot")
async def start() -> None:
    await kernel.wake()


@loop
async def measure(wake) -> None:
    await asyncio.sleep(SETTLING_S)
    took_ms = []
    for index in range(COUNT):
        began = time.perf_counter()
        await kernel.output("cognet:output:field", {"channel": "lone", "reading": {"value": index}})
        took_ms.append(1000 * (time.perf_counter() - began))
    await kernel.output("cognet:output:text", {"channel": "report", "content": json.dumps(took_ms)})
    wake.stop()
