"""Modules that can't be loaded, and hosts that crash, hang or talk nonsense: nobody waits for ever, others go on."""

from __future__ import annotations

import asyncio
import os
import re
import signal

import psutil
import pytest

from runtime.abi.errors import ToolFailed, ToolUnavailable
from runtime.kernel.tools.host import NAME, Patience
from runtime.tools.protocol import THREADS

from .conftest import World

QUICK = Patience(load_s=2.0, heartbeat_s=2.0, stuck_s=0.2, watch_s=0.1)
GOOD = """
from runtime import tool

@tool
def ping() -> str:
    return "pong"
"""
BAD = """
import ctypes, os, threading, time
from runtime import tool

@tool
def crash():
    os._exit(7)

@tool
def hang(s: float = 600):
    time.sleep(s)

@tool
async def hang_softly():
    import asyncio
    await asyncio.sleep(600)

@tool
async def block():
    time.sleep(600)

@tool
def hold():
    ctypes.PyDLL(None).sleep(600)  # keeps the interpreter to itself
"""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def f(:\n  pass", r"SyntaxError: invalid syntax \(bad.py:1\)"),
        ("import no_such_library", r"ModuleNotFoundError: No module named 'no_such_library' \(bad.py:1\)"),
        ("\nx = 1 / 0", r"ZeroDivisionError: division by zero \(bad.py:2\)"),
        ("import sys\nsys.exit('no')", r"SystemExit: no \(bad.py:2\)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f():\n  pass", "no function of it is marked @tool"),
        ("from runtime import tool\n@tool\nclass A: pass", "ToolInvalid: .*@tool takes a function"),
        ("from runtime import tool\n@tool\ndef f():\n  yield", "it yields"),
        ("from runtime import kernel\nkernel.clock()", "COGNET_ACCESSED_BEFORE_LOAD"),
    ],
)
async def test_a_module_that_fails_says_why_and_the_others_work(world: World, source: str, reason: str) -> None:
    world.module("bad", source)
    world.module("good", GOOD)
    tools = await world.started()
    assert [module.name for module in tools.scope.modules] == ["good"]
    assert [one.name for one in tools.scope.unavailable] == ["bad"]
    assert re.search(reason, world.reason("bad")), world.reason("bad")
    assert await world.call("good.ping") == "pong"
    with pytest.raises(ToolUnavailable, match="bad: "):
        await world.call("bad.f")


@pytest.mark.parametrize("name", ["json", "numpy", "runtime", "class", "no-name", "pytest"])
async def test_a_name_that_means_something_else_is_refused(world: World, name: str) -> None:
    world.module(name, GOOD)
    world.module("good", GOOD)
    await world.started()
    assert world.reason(name)
    assert await world.call("good.ping") == "pong"


async def test_modules_may_import_each_other_and_what_lies_beside_them(world: World) -> None:
    world.module("_shared", "count = 0")
    world.module("a", "import _shared, b\nfrom runtime import tool\n@tool\ndef f():\n  b.g(); return _shared.count")
    world.module("b", "import _shared\nfrom runtime import tool\n@tool\ndef g():\n  _shared.count += 1")
    tools = await world.started()
    assert [module.name for module in tools.scope.modules] == ["a", "b"]
    assert tools.scope.unavailable == []
    await world.call("b.g")
    assert await world.call("a.f") == 2


@pytest.mark.parametrize("source", ["import time\ntime.sleep(600)", "while True: pass"])
async def test_a_module_that_hangs_at_import_is_left_out_of_the_next_life(world: World, source: str) -> None:
    world.module("bad", source)
    world.module("good", GOOD)
    tools = world.start(patience=QUICK)
    await world.until(lambda: tools.scope.modules)
    assert world.reason("bad").startswith("it took more than 2 s while importing it")
    assert await world.call("good.ping") == "pong"


async def test_a_module_that_ends_the_process_at_import_is_left_out_too(world: World) -> None:
    world.module("bad", "import os\nos._exit(9)")
    world.module("good", GOOD)
    tools = world.start(patience=QUICK)
    await world.until(lambda: tools.scope.modules)
    assert world.reason("bad").startswith("the tools host ended with 9 while importing it")


async def test_calls_in_flight_fail_when_the_host_ends_and_later_ones_work(world: World) -> None:
    world.module("bad", BAD)
    world.module("good", GOOD)
    tools = await world.started()
    hanging = asyncio.ensure_future(world.call("bad.hang_softly"))
    with pytest.raises(ToolFailed, match="the tools host ended"):
        await world.call("bad.crash")
    with pytest.raises(ToolFailed, match="the tools host ended"):
        await hanging
    await world.until(lambda: tools.scope.modules)
    assert await world.call("good.ping") == "pong"
    assert world.restarts == 1


async def test_while_the_host_is_away_the_scope_says_so(world: World) -> None:
    world.module("bad", BAD)
    tools = await world.started()
    with pytest.raises(ToolFailed):
        await world.call("bad.crash")
    await world.until(lambda: len(world.scopes) == 4)  # at the start, ready, away, ready again
    assert [bool(scope.modules) for scope in world.scopes] == [False, True, False, True]
    assert "being started again" in world.scopes[2].unavailable[0].reason
    assert tools.scope == world.scopes[3]


@pytest.mark.parametrize("name", ["bad.block", "bad.hold"])
async def test_a_host_without_heartbeat_is_killed_and_started_again(world: World, name: str) -> None:
    world.module("bad", BAD)
    world.module("good", GOOD)
    tools = await world.started(patience=QUICK)
    with pytest.raises(ToolFailed, match="the tools host ended"):
        await world.call(name)
    assert "kernel:process:killed" in world.types()
    await world.until(lambda: tools.scope.modules)
    assert await world.call("good.ping") == "pong"


async def test_an_abandoned_call_frees_its_caller_and_others_go_on(world: World) -> None:
    world.module("bad", BAD)
    world.module("good", GOOD)
    await world.started()
    for name in ("bad.hang", "bad.hang_softly"):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.call(name), 0.2)
    assert await world.call("good.ping") == "pong"
    assert world.restarts == 0


async def test_a_host_whose_threads_are_all_stuck_is_killed(world: World) -> None:
    world.module("bad", BAD)
    world.module("good", GOOD)
    tools = await world.started(patience=QUICK)
    calls = [asyncio.ensure_future(world.call("bad.hang")) for _ in range(THREADS)]
    waiting = asyncio.ensure_future(world.call("good.ping"))
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    with pytest.raises(ToolFailed, match="the tools host ended"):
        await waiting
    assert [data.reason for type_, data in world.told if type_ == "kernel:process:killed"] == [
        "all 16 threads are stuck in calls that nobody waits for"
    ]
    await world.until(lambda: tools.scope.modules)
    assert await world.call("good.ping") == "pong"


async def test_more_calls_than_threads_wait_for_a_thread_and_are_all_answered(world: World) -> None:
    world.module("bad", BAD)
    await world.started()
    calls = [world.call("bad.hang", 0.01) for _ in range(4 * THREADS)]
    assert await asyncio.gather(*calls) == [None] * (4 * THREADS)


async def test_a_waiting_call_that_is_abandoned_never_begins(world: World) -> None:
    world.module("slow", "from runtime import tool\nbegun = 0\n@tool\ndef count():\n  return begun\n" + SLOW)
    await world.started()
    calls = [asyncio.ensure_future(world.call("slow.slow", 1.0)) for _ in range(THREADS)]
    extra = [asyncio.ensure_future(world.call("slow.slow", 0.0)) for _ in range(5)]
    await world.until(lambda: world.tools and len(world.tools._host._link._calls) == THREADS + 5)  # type: ignore[union-attr]
    for call in extra:
        call.cancel()
    await asyncio.gather(*calls)
    assert await world.call("slow.count") == THREADS


SLOW = """
import time
@tool
def slow(s: float):
    global begun
    begun += 1
    time.sleep(s)
"""


async def test_too_many_calls_at_once_are_refused(world: World) -> None:
    world.module("bad", BAD)
    await world.started()
    calls = [asyncio.ensure_future(world.call("bad.hang_softly")) for _ in range(300)]
    done = await world.until(lambda: [call for call in calls if call.done()])
    assert len(done) == 300 - 256
    for call in done:
        with pytest.raises(ToolFailed, match="256 calls are waiting"):
            call.result()
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_host_that_talks_nonsense_is_killed_and_told(world: World) -> None:
    world.module("bad", GOOD + "\nimport os\n@tool\ndef chatter(fd: int):\n  os.write(fd, b'\\xff' * 64)\n")
    tools = await world.started()
    fd = int(psutil.Process(world.supervisor.pids()[NAME][0]).cmdline()[-2])
    with pytest.raises(ToolFailed, match="the tools host ended"):
        await world.call("bad.chatter", fd)
    await world.until(lambda: "kernel:link:refused" in world.types())
    await world.until(lambda: tools.scope.modules)
    assert await world.call("bad.ping") == "pong"


async def test_it_runs_at_nice_10_in_the_agents_folder_and_leaves_no_bytecode(world: World) -> None:
    world.module("good", GOOD + "\nimport os\n@tool\ndef here():\n  return [os.getcwd(), os.nice(0)]\n")
    await world.started()
    assert await world.call("good.here") == [str(world.folder), 10]
    assert not (world.folder / "modules" / "__pycache__").exists()


async def test_it_does_not_leak_its_link_to_what_a_tool_starts(world: World) -> None:
    world.module(
        "good",
        "import os, subprocess\nfrom runtime import tool\n@tool\ndef fds():\n"
        "  return subprocess.run(['ls', '/proc/self/fd'], capture_output=True, text=True, close_fds=False).stdout",
    )
    await world.started()
    fd = psutil.Process(world.supervisor.pids()[NAME][0]).cmdline()[-2]
    assert fd not in (await world.call("good.fds")).split()


async def test_exit_functions_of_a_module_run_at_the_end(world: World) -> None:
    world.module("good", GOOD + "\nimport atexit\natexit.register(print, 'the lamp is off')\n")
    await world.started()
    await world.supervisor.end(NAME, grace_s=30)
    assert "[tools] the lamp is off" in world.said


async def test_it_ends_when_the_kernels_end_of_the_link_is_closed(world: World) -> None:
    world.module("good", GOOD)
    tools = await world.started()
    first = world.supervisor.pids()[NAME][0]
    assert tools._host._link
    tools._host._link.close()
    await world.until(lambda: world.restarts == 1)
    assert not psutil.pid_exists(first)


async def test_a_killed_host_comes_back(world: World) -> None:
    world.module("good", GOOD)
    tools = await world.started()
    os.kill(world.supervisor.pids()[NAME][0], signal.SIGKILL)
    await world.until(lambda: world.restarts == 1 and tools.scope.modules)
    assert await world.call("good.ping") == "pong"
