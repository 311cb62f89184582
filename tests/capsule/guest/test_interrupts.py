"""Stops at every moment: they reach their block, alone, and never the one after it."""

from __future__ import annotations

import asyncio

import pytest

pytestmark = pytest.mark.sandbox

BUSY = {
    "computing": "x = 0\nfor i in range({n}): x += i",
    "sleeping": "import time\ntime.sleep({n} / 20_000_000)",
    "awaiting": "import asyncio\nawait asyncio.sleep({n} / 20_000_000)",
}


async def stop_after(capsule, codes, delay_s):
    """Start a run, stop all of it after a moment, and return its results."""
    blocks, results = capsule.blocks(*codes), {}
    running = asyncio.ensure_future(capsule.capsule.execute(blocks, results.__setitem__))
    await asyncio.sleep(delay_s)
    capsule.capsule.interrupt([block.id for block in blocks])
    await asyncio.wait_for(running, 30)
    return [results[block.id] for block in blocks]


@pytest.mark.parametrize("busy", BUSY.values(), ids=BUSY.keys())
@pytest.mark.parametrize("count", [1, 3])
async def test_a_stop_costs_no_incarnation_and_hits_no_other_block(capsule, busy, count):
    await capsule.one("kept = 7")
    for number in range(100):
        code = busy.format(n=(number * 7919) % 20_000)
        for result in await stop_after(capsule, [code] * count, (number % 25) * 0.0001):
            assert result.ok or result.error.kind == "interrupt", result
        follow = await capsule.run(*["sum([1 for i in range(200)])"] * count)
        assert [result.value for result in follow] == [200] * count, follow
    assert (await capsule.one("kept")).value == 7
    assert capsule.incarnations == 1


async def test_a_stop_before_the_block_begins_reaches_it(capsule):
    await capsule.one("kept = 7")
    for number in range(24):
        blocks, results = capsule.blocks("import time\ntime.sleep(60)"), {}
        running = asyncio.ensure_future(capsule.capsule.execute(blocks, results.__setitem__))
        for _ in range(1 + number % 8):
            await asyncio.sleep(0)
        capsule.capsule.interrupt([blocks[0].id])
        await asyncio.wait_for(running, 30)
        assert results[blocks[0].id].error.kind == "interrupt"
    assert (await capsule.one("kept")).value == 7


async def test_a_stop_leaves_the_tasks_of_earlier_blocks_alone(capsule):
    await capsule.one(
        "import asyncio\nticks = 0\nasync def tick():\n    global ticks\n    while True:\n"
        "        await asyncio.sleep(0.001)\n        ticks += 1\n"
        "task = asyncio.create_task(tick())\nawait asyncio.sleep(0.01)"
    )
    for number in range(20):
        (result,) = await stop_after(capsule, ["await asyncio.sleep(60)"], 0.005 + number * 0.0003)
        assert result.error.kind == "interrupt"
        goes_on = await capsule.one("before = ticks\nwhile ticks < before + 3: await asyncio.sleep(0.001)\ntask.done()")
        assert goes_on.value is False
    assert capsule.incarnations == 1


async def test_a_stop_tears_no_import(capsule):
    """Half a numpy can't be imported a second time."""
    for number in range(6):
        code = "import asyncio, numpy\nawait asyncio.sleep(0)\nwhile True: pass"
        for result in await stop_after(capsule, [code] * (1 + number % 2), 0.02 * number):
            assert result.error.kind == "interrupt"
        works = await capsule.one("import asyncio, numpy\nawait asyncio.sleep(0)\nint(numpy.arange(3).sum())")
        assert works.value == 3, works
        if number % 3 == 2:
            await capsule.one("import os\nos._exit(0)")


async def test_a_block_that_ends_well_after_its_stop_was_stopped(capsule):
    code = "try:\n    while True: pass\nexcept BaseException: pass\n'swallowed'"
    alone, *side_by_side = [await capsule.one(code, timeout_s=0.2), *await capsule.run(code, "2", timeout_s=2)]
    assert alone.error.kind == "timeout"
    assert side_by_side[0].error.kind == "timeout"
    assert side_by_side[1].value == 2


async def test_what_a_block_of_a_list_leaves_running_ends_with_it(capsule):
    code = (
        "import asyncio\nasync def late():\n    try: await asyncio.sleep(60)\n    finally: print('ended')\n"
        "task = asyncio.create_task(late())\nawait asyncio.sleep(0)"
    )
    for result in await capsule.run(code, code):
        assert result.ok
        assert result.stdout == ["ended"]
