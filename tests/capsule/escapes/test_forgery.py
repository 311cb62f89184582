"""A guest that speaks for itself: what it forges is refused and told, or concerns its own block; the next one works."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from capsule.protocol import ToolCall
from capsule.scope import AxonScope, Member, Module
from runtime.abi.errors import PolicyDenied

pytestmark = [pytest.mark.sandbox, pytest.mark.asyncio(loop_scope="module")]

ARM = Module(name="arm", members=[Member(name="move", declaration="def move(x: object) -> object")])
SPEAK = """
import msgspec, os, socket, stat, struct, time
from capsule.guest import belonging
me = belonging.block.get()
fds = [int(name) for name in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + name)]
kernel = socket.socket(fileno=os.dup([fd for fd in fds if stat.S_ISSOCK(os.fstat(fd).st_mode)][0]))
def frame(data):
    return struct.pack('>I', len(data)) + data
def say(*message):
    kernel.sendall(frame(msgspec.msgpack.encode(message)))
def call(*names, args=(), kwargs={}, block=None):
    say('Asked', 7, ['ToolCall', block or me, *names, list(args), kwargs])
"""
REFUSED = {
    "a second hello": "say({'protocol': 'axon-capsule/1', 'pid': 1})",
    "ready again": "say('Ready')",
    "begun twice": "say('Started', me)",
    "a block to come has begun": "say('Started', me[:-1] + 'f')",
    "a block to come has ended": "say('Settled', me[:-1] + 'f', {'ok': True, 'value': 1})",
    "an order to the kernel": "say('Execute', [[me, 'x']])",
    "a frame above the limit": "kernel.sendall(struct.pack('>I', 2 * 1024 * 1024 + 1))",
    "a name of 10 MB": "call('arm', 'm' * 1_000_000)",
    "arguments that are a number": "say('Asked', 7, ['ToolCall', me, 'arm', 'move', 5, {}])",
    "names that are numbers": "call(1, 2)",
    "a call without a number": "say('Asked', None, ['ToolCall', me, 'arm', 'move', [], {}])",
    "a tower as an argument": "call('arm', 'move', args=[msgspec.Raw(b'\\x91' * 500 + b'\\xc0')])",
    "a higher tower": "call('arm', 'move', args=[msgspec.Raw(b'\\x91' * 500_000 + b'\\xc0')])",
    "bytes as an argument": "call('arm', 'move', args=[b'bytes'])",
    "a date as an argument": "call('arm', 'move', args=[msgspec.Raw(b'\\xd6\\xff' + bytes(4))])",
    "an argument that isn't a number": "call('arm', 'move', args=[float('nan')])",
    "an infinite argument": "call('arm', 'move', args=[float('inf')])",
    "an argument of a million lists": "call('arm', 'move', args=[[[]] * 1_000_000])",
    "names of arguments that aren't names": "call('arm', 'move', kwargs={1: 2})",
    "a value of a million lists": "say('Settled', me, {'ok': True, 'value': [[]] * 1_000_000})",
    "a value of many dictionaries": "say('Settled', me, {'ok': True, 'value': [{}] * 300_000})",
    "a scope of a million lists": "say('Settled', me, {'ok': True, 'scope': {'values': {'a': [[]] * 1_000_000}}})",
    "output of a million lines": "say('Settled', me, {'ok': True, 'stdout': [''] * 1_000_000})",
    "a million absent names": "say('Settled', me, {'ok': True, 'scope': "
    "{'unavailable': [{'name': 'a', 'reason': 'function'}] * 5_000}})",
    "text that is no text": "say('Settled', me, {'ok': True, 'value': msgspec.Raw(b'\\xa2\\xff\\xff')})",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting(bench: Callable[..., Any]) -> AsyncIterator[Any]:
    """One capsule for all; what it loses is replaced."""
    made = bench()
    made.scope(AxonScope(modules=[ARM]))
    yield made
    await made.close()


@pytest.fixture
def arm(lasting: Any) -> Any:
    """It, with a tool that gives back what it is called with; ``calls`` and what was told and said are of this test."""
    lasting.calls = []

    async def tool(call: ToolCall) -> Any:
        lasting.calls.append(call)
        return call.args

    lasting.tool = tool
    lasting.told.clear()
    lasting.said.clear()
    return lasting


def refusals(capsule: Any) -> list[str]:
    return [fact.code for type_, fact in capsule.told if type_ == "kernel:link:refused"]


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED.keys())
async def test_what_no_honest_guest_says_ends_it(arm: Any, code: str) -> None:
    result = await arm.one(f"{SPEAK}\n{code}\ntime.sleep(60)")
    assert result.error.kind == "exception"
    assert refusals(arm) == ["FRAME_INVALID"]
    assert arm.calls == []
    assert (await arm.one("1 + 1")).value == 2


async def test_a_call_in_the_name_of_another_block_is_that_blocks_or_nobodys(arm: Any) -> None:
    """Blocks of a list share a process; whoever has ended or hasn't begun calls nothing."""
    result = await arm.one(f"{SPEAK}\ncall('arm', 'move', block='nobody')")
    assert result.ok
    assert (arm.calls, refusals(arm)) == ([], [])


@pytest.mark.parametrize(
    "names",
    [("arm.move", "x"), ("", "arm.move"), ("arm", "move.x"), ("arm", "move\0"), (" arm", "move"), ("ARM", "move")],
)
async def test_a_name_comes_to_policy_as_it_was_said(arm: Any, names: tuple[str, str]) -> None:
    async def tool(call: ToolCall) -> Any:
        arm.calls.append(call)
        raise PolicyDenied("no rule names it")

    arm.tool = tool
    await arm.one(f"{SPEAK}\ncall(*{names!r})\ntime.sleep(0.2)")
    assert [(call.module, call.member) for call in arm.calls] == [names]
    assert (await arm.one("1 + 1")).value == 2


async def test_calls_that_wait_are_bounded_in_number_and_in_bytes(arm: Any) -> None:
    never = asyncio.Event()

    async def tool(call: ToolCall) -> Any:
        arm.calls.append(call)
        await never.wait()

    arm.tool = tool
    await arm.one(f"{SPEAK}\nfor _ in range(40): call('arm', 'move', args=['x' * 190_000])\ntime.sleep(0.5)")
    assert 0 < len(arm.calls) <= 2 * 1024 * 1024 // 190_000
    arm.calls.clear()
    await arm.one(f"{SPEAK}\nfor _ in range(600): call('arm', 'move')\ntime.sleep(0.5)")
    assert 0 < len(arm.calls) <= 256
    arm.tool = as_said
    assert (await arm.one("import arm\narm.move('x' * 190_000)")).value == ["x" * 190_000]
    assert refusals(arm) == []


async def as_said(call: ToolCall) -> Any:
    return call.args


async def test_what_a_stub_sends_is_never_too_large(arm: Any) -> None:
    """The largest that a block may say in order, in characters that take most bytes, and beyond."""
    code = "import arm\narm.move({0})"
    for value in ("'x' * 200_000", "'\U0001f600' * 50_000", "list(range(20_000))", "{str(n): n for n in range(9_000)}"):
        assert (await arm.one(f"len(__import__('arm').move({value})[0])")).value > 0
    for value in ("'x' * 300_000", "['\U0001f600' * 60_000]", "[[]] * 60_000", "float('nan')", "b''", "2**70"):
        assert (await arm.one(code.format(value))).error.message.startswith("TypeError: arm.move takes plain values")
    assert (refusals(arm), arm.incarnations) == ([], 0)


@pytest.mark.parametrize(
    "code",
    [
        "'\U0001f600' * 200_000",
        "list(range(50_000))[:49_000]",
        "[2.5**-n for n in range(20_000)]",
        "{'\U0001f600' * 2 + str(n): [n] for n in range(8_000)}",
        "for n in range(1_900): globals()['\U0001d41a' * 20 + str(n)] = [float(n)] * 9\n'ends'",
        "for n in range(9): globals()[f'v{n}'] = '\U0001f600' * 40_000\n'ends'",
        "globals()['half \\ud800'] = '\\ud800'; '\\ud800'",
        "for n in range(100_000): print('\U0001f600')\nfor n in range(100_000): print()\n'ends'",
    ],
)
async def test_what_leaves_a_block_in_order_is_never_too_large(arm: Any, code: str) -> None:
    result = await arm.one(code)
    assert result.ok, result.error
    assert result.value, result.value_error
    assert (refusals(arm), arm.incarnations) == ([], 0)


async def test_who_does_not_read_the_answers_ends(arm: Any) -> None:
    async def tool(_: ToolCall) -> Any:
        return "x" * 1_000_000

    arm.tool = tool
    stop_reading = "import threading, capsule.guest.wire as w\nw.receive_frame = lambda *_: time.sleep(60)\n"
    flood = "while True: call('arm', 'move')"
    result = await arm.one(f"{SPEAK}\n{stop_reading}\ncall('arm', 'move')\n{flood}", timeout_s=20)
    assert not result.ok
    assert refusals(arm) == ["FRAME_INVALID"]
    assert (await arm.one("1 + 1")).value == 2


async def test_descriptors_sent_to_the_kernel_stay_nowhere(arm: Any) -> None:
    await arm.one("1")
    before = len(os.listdir("/proc/self/fd"))
    code = (
        "data = frame(msgspec.msgpack.encode(['Asked', 7, ['ToolCall', me, 'arm', 'move', [], {}]]))\n"
        "for _ in range(50): socket.send_fds(kernel, [data], [0, 1, 2, os.open('/tmp', os.O_RDONLY)])\ntime.sleep(0.3)"
    )
    assert (await arm.one(f"{SPEAK}\n{code}")).ok
    assert len(arm.calls) == 50
    assert len(os.listdir("/proc/self/fd")) == before


FLOODS = {
    "lines": "os.write(1, b'\\n' * 65_536)",
    "words that differ": "os.write(1, b'\\n'.join(os.urandom(9).hex().encode() for _ in range(3_000)))",
    "one line": "os.write(1, b'x' * 65_536)",
}


@pytest.mark.parametrize("code", FLOODS.values(), ids=FLOODS.keys())
async def test_a_flood_on_the_processs_own_output_waits_for_itself(arm: Any, code: str) -> None:
    result = await arm.one(f"import os\nwhile True: {code}", timeout_s=1)
    assert result.error.kind == "timeout"
    assert len(arm.said) <= 20 * 5, "read without a bound"
    assert (await arm.one("1 + 1")).value == 2


VANISHING = {
    "the main thread alone ends": "import ctypes, platform\n"
    "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)",
    "every handler is another": "import signal, time\nfor n in range(1, 65):\n    try: signal.signal(n, print)\n"
    "    except (OSError, ValueError): pass\nwhile True: time.sleep(1)",
    "threads that never end": "import threading\nfor _ in range(5):\n    threading.Thread(target=lambda: exec("
    "'while True: pass')).start()\nwhile True: pass",
}


@pytest.mark.parametrize("code", VANISHING.values(), ids=VANISHING.keys())
async def test_no_process_outlives_its_capsule(make_capsule: Callable[..., Any], code: str) -> None:
    capsule = make_capsule()
    await capsule.one("1")
    process = Path("/proc", str(capsule.supervisor.pids()["capsule"][0]))
    assert is_there(process)
    await capsule.one(code, timeout_s=0.5)
    await capsule.close()
    async with asyncio.timeout(30):
        while is_there(process):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


def is_there(process: Path) -> bool:
    return process.exists()
