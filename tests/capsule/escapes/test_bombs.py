"""Time bombs: what a block leaves behind to act later has no more rights later, and the next block works."""

from __future__ import annotations

import pytest

from capsule.result import RunResult

pytestmark = pytest.mark.sandbox

BOOM = """
import builtins, os
def boom():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.write(2, b'escaped\\n')
builtins.boom = boom
"""
BOMBS = {
    "a thread": "import threading, time\ndef f():\n    time.sleep(0.1)\n    boom()\nthreading.Thread(target=f).start()",
    "a destructor": "class B:\n    def __del__(self): boom()\nimport sys\nsys.kept = [B()]",
    "the end of the interpreter": "import atexit\natexit.register(lambda: boom())",
    "a trace": "import sys\nsys.settrace(lambda *a: boom())",
    "a profile": "import sys, threading\nthreading.setprofile(lambda *a: boom())\nsys.setprofile(lambda *a: boom())",
    "a timer's signal": "import signal\nsignal.signal(signal.SIGALRM, lambda *a: boom())\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.1)",
    "the collector": "import gc\ngc.callbacks.append(lambda *a: boom())",
    "a weak reference": "import sys, weakref\nclass C: pass\nsys.c = C()\nsys.w = weakref.ref(sys.c, lambda _: boom())",
    "an import": "import sys\nclass F:\n    def find_spec(self, *a): boom()\nsys.meta_path.insert(0, F())",
    "a task": "import asyncio\nasync def t():\n    await asyncio.sleep(0.05)\n"
    "    boom()\nkept = asyncio.ensure_future(t())\nawait asyncio.sleep(0)",
    "an audit hook": "import sys\nsys.addaudithook(lambda *a: None)\nsys.excepthook = lambda *a: boom()",
    "print": "import builtins\nbuiltins.print = lambda *a, **k: (_ for _ in ()).throw(SystemExit)",
}


async def set_off(capsule, code):
    """The bomb, and then what sets it off: other blocks, waiting, garbage, an import, a loop of events."""
    await capsule.one(BOOM)
    await capsule.one(code)
    await capsule.one("import gc, sys, time\nsys.kept = sys.c = None\ngc.collect()\ntime.sleep(0.3)\nimport colorsys")
    await capsule.one("import asyncio\nawait asyncio.sleep(0.1)")
    assert (await capsule.one("1 + 1")).value == 2
    await capsule.close()
    return [line for line in capsule.said if "escaped" in line]


@pytest.mark.parametrize("code", BOMBS.values(), ids=BOMBS.keys())
async def test_a_bomb_never_leaves_the_capsule(capsule, code):
    assert not await set_off(capsule, code)


@pytest.mark.parametrize(
    "name", ["a thread", "a destructor", "the collector", "a weak reference", "an import", "a task"]
)
async def test_without_a_sandbox_it_goes_off(make_capsule, name):
    """What keeps it in is the sandbox."""
    assert await set_off(make_capsule(sandboxed=False), BOMBS[name])


FORGERIES = {
    "its own result": "running.Block.run = lambda self, complete: RunResult(ok=True, value='forged')",
    "the names of Python": "import builtins\nbuiltins.isinstance = lambda *a: True",
    "what leaves": "interpreter.Settled = lambda id, result: ['Settled', id, {'ok': 5}]",
}


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES.keys())
async def test_an_interpreter_that_lies_lies_about_its_own_blocks_alone(capsule, code):
    """A block may change the process that runs it; the kernel still gets one valid result for each block it gave."""
    await capsule.one(f"from capsule.guest import interpreter, running\nfrom capsule.result import RunResult\n{code}")
    results = [await capsule.one("1 + 1", timeout_s=2) for _ in range(3)]
    assert all(isinstance(result, RunResult) for result in results)
