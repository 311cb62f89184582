"""How blocks end that don't want to, in a real sandboxed guest, and that the next one works."""

from __future__ import annotations

import asyncio

import pytest

pytestmark = pytest.mark.sandbox

SPIN = "while True: pass"
ALONE = {
    "a loop": SPIN,
    "a sleep": "import time\ntime.sleep(60)",
    "a lock": "import threading\nl = threading.Lock()\nl.acquire()\nl.acquire()",
    "a pattern": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
    "an await": "import asyncio\nawait asyncio.sleep(60)",
    "a loop in a coroutine": "async def f():\n    while True: pass\nawait f()",
    "an except Exception": "while True:\n    try:\n        while True: pass\n    except Exception:\n        pass",
    "a finally": "import time\ntry:\n    time.sleep(60)\nfinally:\n    time.sleep(60)",
    "one except of everything": "import time\ntry:\n    time.sleep(60)\nexcept BaseException:\n    time.sleep(60)",
    "a cancellation that is swallowed": "import asyncio\nfor _ in range(5):\n"
    "    try: await asyncio.sleep(60)\n    except asyncio.CancelledError: pass",
    "a task of its own": "import asyncio\nasync def spin():\n    while True: pass\nawait asyncio.create_task(spin())",
    "a __del__": "class D:\n    def __del__(self):\n        while True: pass\nd = D()\ndel d\n'after'",
    "a __str__": "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
}


@pytest.mark.parametrize("code", ALONE.values(), ids=ALONE.keys())
async def test_a_lone_block_that_times_out_ends_alone(capsule, code):
    await capsule.one("kept = 7")
    result = await capsule.one(f"print('said')\n{code}", timeout_s=0.3)
    assert result.error.kind == "timeout"
    assert result.stdout == ["said"]
    assert (await capsule.one("kept")).value == 7
    assert capsule.incarnations == 1


STUBBORN = {
    "a C call that holds the interpreter": "sum(range(10**11))",
    "an except of everything": "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
    "a handler of its own": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
}


@pytest.mark.parametrize("code", STUBBORN.values(), ids=STUBBORN.keys())
async def test_a_block_that_will_not_end_costs_its_incarnation(capsule, code):
    await capsule.one("kept = 7")
    result = await capsule.one(code, timeout_s=0.3)
    assert result.error.kind == "timeout"
    after = await capsule.one("'kept' in globals()")
    assert after.value is False
    assert capsule.incarnations == 2


async def test_blocks_side_by_side_end_alone_and_the_others_go_on(capsule):
    slow = "import time\ntime.sleep(1)\n'done'"
    spin, asleep, waits, good = await capsule.run(
        SPIN, "import time\ntime.sleep(60)", "import asyncio\nawait asyncio.sleep(60)", slow, timeout_s=3
    )
    assert [spin.error.kind, asleep.error.kind, waits.error.kind] == ["timeout"] * 3
    assert good.value == "done"
    assert capsule.incarnations == 1


async def test_one_that_holds_the_interpreter_takes_the_others_along(capsule):
    results = await capsule.run("sum(range(10**11))", "import time\ntime.sleep(60)", timeout_s=0.5)
    assert {result.error.kind for result in results} <= {"timeout", "exception"}
    assert (await capsule.one("1")).value == 1


async def test_an_interrupt_ends_the_block_it_aims_at(capsule):
    blocks, results = capsule.blocks(SPIN, "import time\ntime.sleep(1)\n'done'"), {}
    running = asyncio.ensure_future(capsule.capsule.execute(blocks, results.__setitem__))
    begun = capsule.capsule._running
    while not begun or not all(one.began for one in begun.values()):  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)
    capsule.capsule.interrupt([blocks[0].id])
    await asyncio.wait_for(running, 30)
    assert results[blocks[0].id].error.kind == "interrupt"
    assert results[blocks[1].id].value == "done"


async def test_interrupts_at_every_moment_never_hit_the_next_block(capsule):
    """A stop that comes just when a block ends is that block's or nobody's."""
    interrupted = 0
    for number in range(300):
        (block,) = capsule.blocks(f"n = {number}\nfor i in range({(number * 3700) % 400_000}): pass\nn")
        results = {}
        running = asyncio.ensure_future(capsule.capsule.execute([block], results.__setitem__))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        if number % 3:
            await asyncio.sleep(0.0003 * (number % 5))
        capsule.capsule.interrupt([block.id])
        await asyncio.wait_for(running, 30)
        interrupted += not results[block.id].ok
        follows = await capsule.one(f"{number} + 1")
        assert follows.value == number + 1, follows
    assert interrupted > 0


DEADLY = {
    "os._exit": "import os\nos._exit(0)",
    "a segmentation fault": "import ctypes\nctypes.string_at(0)",
    "abort": "import os\nos.abort()",
    "a closed socket": "import os\nfor fd in range(3, 64):\n    try: os.close(fd)\n    except OSError: pass",
}


@pytest.mark.parametrize("code", DEADLY.values(), ids=DEADLY.keys())
async def test_a_dead_incarnation_is_an_exception_and_the_next_block_works(capsule, code):
    result = await capsule.one(code, timeout_s=5)
    assert not result.ok
    assert result.error.kind in ("exception", "timeout")
    assert (await capsule.one("1 + 1")).value == 2


GREEDY = {
    "memory": "x = bytearray(20 * 10**9)",
    "memory in small pieces": "x = []\nwhile True: x.append(bytearray(10**6))",
    "recursion": "def f(): return f()\nf()",
    "processes": "import os\nwhile True: os.fork()",
    "threads": "import threading as t, time\nwhile True: t.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "descriptors": "import os\nwhile True: os.pipe()",
    "its disk": "f = open('/tmp/x', 'wb')\nwhile True: f.write(b'x' * 10**6)",
}


@pytest.mark.parametrize("code", GREEDY.values(), ids=GREEDY.keys())
async def test_greed_is_a_result_and_the_next_block_works(capsule, code):
    result = await capsule.one(code, timeout_s=10)
    assert not result.ok
    assert (await capsule.one("1 + 1")).value == 2


FORGED = {
    "garbage": "b'\\x00\\x00\\x00\\x04abcd'",
    "an oversize frame": "b'\\xff\\xff\\xff\\xff'",
    "a result of another block": "frame(['Settled', 'nobody', {'ok': True}])",
    "a call of another block": "frame(['Asked', 1, ['ToolCall', 'nobody', 'arm', 'move', [], {}]])",
    "a result of a wrong type": "frame(['Settled', 5, 6])",
    "half a frame": "b'\\x00\\x00'",
}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED.keys())
async def test_forged_messages_harm_nobody(capsule, data):
    code = f"""
import os, struct, stat, msgspec
def frame(value):
    data = msgspec.msgpack.encode(value)
    return struct.pack('>I', len(data)) + data
for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, {data})
    except OSError: pass
"""
    await capsule.one(code, timeout_s=2)
    assert (await capsule.one("1 + 1")).value == 2
    recorded = [fact.code for type_, fact in capsule.told if type_ == "kernel:link:refused"]
    # A block that has ended may have left a thread that still calls; all else is said by no guest of ours.
    assert recorded == ([] if data == FORGED["a call of another block"] else ["FRAME_INVALID"])


async def test_a_block_that_ends_its_process_at_once_is_not_executed_again(capsule):
    for _ in range(5):
        result = await capsule.one("import os; os._exit(3)")
        assert result.error.message == "the capsule's process ended with 3"
    ends = [fact for type_, fact in capsule.told if type_ == "kernel:process:ended"]
    assert len(ends) == 5


async def test_a_flood_of_calls_ends_the_flooder(capsule):
    code = """
import os, struct, stat, msgspec
data = msgspec.msgpack.encode(['Asked', 1, ['ToolCall', 'nobody', 'arm', 'move', [], {}]])
data = (struct.pack('>I', len(data)) + data) * 1000
while True:
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, data)
        except OSError: pass
"""
    result = await capsule.one(code, timeout_s=2)
    assert not result.ok
    assert (await capsule.one("1 + 1")).value == 2


async def test_a_cancelled_run_ends_its_blocks(capsule):
    running = asyncio.ensure_future(capsule.one(SPIN))
    while not capsule.capsule._running:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await capsule.one("1 + 1")).value == 2


async def test_a_thread_left_behind_prints_for_nobody_and_next_blocks_work(capsule):
    await capsule.one(
        "import threading, time\ndef bomb():\n    while True:\n        print('late')\n        time.sleep(0.01)\n"
        "threading.Thread(target=bomb, daemon=True).start()"
    )
    result = await capsule.one("import time\ntime.sleep(0.2)\nprint('mine')")
    assert result.stdout == ["mine"]
