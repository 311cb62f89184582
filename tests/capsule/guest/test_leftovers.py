"""Whatever a block has done to its interpreter, the next blocks work; the kernel never notices more than its end."""

from __future__ import annotations

import asyncio

import pytest

pytestmark = pytest.mark.sandbox

DONE = {
    "streams replaced": "import sys\nsys.stdout = sys.stderr = None",
    "streams closed": "import sys\nsys.stdout.close()\nsys.stdout = 5",
    "print replaced": "import builtins\nbuiltins.print = lambda *a: 1 / 0",
    "builtins deleted": "import builtins\ndel builtins.len, builtins.print, builtins.BaseException",
    "builtins cleared": "import builtins\nbuiltins.__dict__.clear()",
    "no builtins": "__builtins__ = None",
    "no globals": "globals().clear()",
    "no modules": "import sys\nsys.modules.clear()",
    "no imports": "import sys\nsys.meta_path.clear()\nsys.path.clear()",
    "an open generator": "def g():\n    try: yield\n    finally: print('x')\nh = g()\nnext(h)",
    "a __del__ that spins": "class D:\n    def __del__(self):\n        while True: pass\nd = D()",
    "an atexit that spins": "import atexit\natexit.register(lambda: exec('while True: pass'))",
    "threads that spin": "import threading\ndef s():\n    while True: pass\n"
    "for _ in range(3): threading.Thread(target=s, daemon=True).start()",
    "more threads than there are": "import threading, time\n"
    "while True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
    "a trace": "import sys\nsys.settrace(lambda *a: 1 / 0)",
    "a profile": "import sys\ndef p(*a): raise ValueError\nsys.setprofile(p)",
    "an audit hook": "import sys\ndef h(*a): raise ValueError\nsys.addaudithook(h)",
    "an alarm": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.01)",
    "deaf to SIGINT": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])",
    "another file in the socket's place": "import os\nn = os.open('/dev/null', os.O_RDWR)\n"
    "for f in range(3, 20):\n    if f != n: os.dup2(n, f)",
    "a closed loop": "import asyncio\nasyncio.get_event_loop().close()",
    "a stopped loop": "import asyncio\nasyncio.get_running_loop().stop()\nawait asyncio.sleep(60)",
    "no hooks": "import sys, threading\nsys.excepthook = sys.unraisablehook = threading.excepthook = None",
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("code", DONE.values(), ids=DONE.keys())
async def test_the_next_blocks_work(capsule, code):
    await capsule.one(code, timeout_s=2)
    await capsule.one("'the first may learn that the incarnation has ended'", timeout_s=5)
    after = await capsule.one("print('said', len([1]))\n1 + 1")
    assert (after.value, after.stdout) == (2, ["said 1"]), after
    assert (await capsule.one("import asyncio\nawait asyncio.sleep(0, 5)")).value == 5
    assert [result.value for result in await capsule.run("1", "2")] == [1, 2]
    assert (await capsule.one("while True: pass", timeout_s=0.3)).error.kind == "timeout"
    assert (await capsule.one("3")).value == 3


async def test_a_block_that_had_not_begun_is_given_to_the_next_incarnation(capsule):
    """What ended its incarnation is another block's doing, and nothing of it has been done."""
    for _ in range(8):
        await capsule.one("import os, threading\nthreading.Thread(target=lambda: os._exit(0)).start()")
        result = await capsule.one("1 + 1")
        assert result.value == 2 or "process ended" in result.error.message, result
    assert (await capsule.one("1 + 1")).value == 2


async def test_a_result_that_is_forged_is_that_blocks_own(capsule):
    (block,) = capsule.blocks("", timeout_s=3)
    forger = (
        "import msgspec, os, stat, time\nfrom capsule.frames import frame\n"
        "found = [int(name) for name in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + name)]\n"
        "fd = [f for f in found if stat.S_ISSOCK(os.fstat(f).st_mode)][0]\n"
        f"os.write(fd, frame(msgspec.msgpack.encode(['Settled', '{block.id}', {{'ok': True, 'value': 'forged'}}])))\n"
        "time.sleep(60)"
    )
    results = {}
    forged = type(block)(id=block.id, code=forger, timeout_s=3)
    await asyncio.wait_for(capsule.capsule.execute([forged], results.__setitem__), 30)
    assert results[block.id].value == "forged"
    await capsule.one("'waits behind the forger, and ends with it'", timeout_s=5)
    assert (await capsule.one("1 + 1")).value == 2
