"""Blocks in the capsule, timed where a cognet waits for them; afterwards blocks that wait to be interrupted."""

import asyncio
import json
import time

from runtime import kernel, loop, on

COUNT = 300
ROUNDS = 10
SETTLING_S = 1.5
"""What starts beside it has started by then, a spare incarnation too."""
DEATHS = 5
TOGETHER = ["import time; time.sleep(0.1)"] * 8
TOOL = """
import time, bench_tool
took = []
for number in range(500):
    began = time.perf_counter()
    bench_tool.nothing(number)
    took.append(1000 * (time.perf_counter() - began))
took
"""


@on("boot")
async def start() -> None:
    await kernel.wake()


@loop
async def measure(wake) -> None:
    if wake.ordinal == 1:
        await asyncio.sleep(SETTLING_S)
        await report(
            lone=[await timed("1+1") for _ in range(COUNT)],
            together=[await timed(TOGETHER) for _ in range(ROUNDS)],
            incarnation=[await after_death(rest_s=SETTLING_S) for _ in range(DEATHS)],
            cold=[await after_death(rest_s=0.0) for _ in range(DEATHS)],
            tool=(await kernel.run(TOOL)).value,
        )
        await kernel.wake()
    else:
        await endless()
    wake.stop()


async def timed(code) -> float:
    """Milliseconds from the call to the result."""
    began = time.perf_counter()
    result = await kernel.run(code)
    took = 1000 * (time.perf_counter() - began)
    assert all(one.ok for one in (result if isinstance(result, list) else [result])), result
    return took


async def after_death(*, rest_s: float) -> float:
    """Milliseconds from the end of an incarnation, as told, to the result of a block in the next one.

    Without a rest there is no spare to take its place, and the next one starts from nothing.
    """
    await asyncio.sleep(rest_s)
    await kernel.run("import os; os._exit(1)")
    return await timed("1")


async def endless() -> None:
    """A block that only an interrupt ends; the next wake begins another."""
    try:
        await kernel.run("while True: pass")
    finally:
        task = asyncio.get_running_loop().create_task(kernel.wake())
        task.add_done_callback(lambda done: done.result())


async def report(**took_ms: list[float]) -> None:
    """Several entries: one has its limit."""
    for name, values in took_ms.items():
        content = json.dumps([round(value, 4) for value in values])
        await kernel.output("cognet:output:text", {"channel": name, "content": content})
