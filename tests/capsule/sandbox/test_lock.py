"""After the lock a guest still does what a brain does, and no more."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable
from typing import Any

import pytest

from capsule.sandbox.limits import MIB, Limits
from capsule.sandbox.lock import lock_down

pytestmark = pytest.mark.sandbox
LOCK = "from capsule.sandbox.lock import lock_down\nassert lock_down()\n"


def test_nothing_is_locked_outside_a_sandbox() -> None:
    assert lock_down() is False


def test_what_a_brain_needs_works(run_guest: Callable[..., Any]) -> None:
    ended = run_guest(
        LOCK
        + """
import asyncio, ctypes, os, shutil, socket, subprocess, tempfile, threading, time, zoneinfo
import msgspec, numpy, uvloop

async def main():
    libc = ctypes.CDLL(None)
    timer = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
    expiry = (ctypes.c_long * 4)(0, 0, 0, 1_000_000)
    assert libc.timerfd_settime(timer, 0, expiry, None) == 0
    rang = asyncio.Event()
    asyncio.get_running_loop().add_reader(timer, rang.set)
    await rang.wait()
    os.close(os.eventfd(0))
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    theirs.send(b"seen")
    assert await reader.readexactly(4) == b"seen"
    writer.close()
    await writer.wait_closed()
    theirs.close()
    assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy2("/app/guest/__main__.py", folder + "/copy")
    assert numpy.ones((99, 99)).dot(numpy.ones((99, 99))).sum() == 99 ** 3
    assert msgspec.msgpack.decode(msgspec.msgpack.encode({"a": 1})) == {"a": 1}
    print(time.strftime("%Y"), zoneinfo.ZoneInfo("Europe/Berlin"), os.urandom(2) is not None)

uvloop.run(main())
asyncio.run(main())
"""
    )
    assert ended.code == 0, ended.said
    assert "Europe/Berlin" in ended.said


@pytest.mark.parametrize(
    "act",
    [
        "import os; os.fork()",
        "import subprocess, sys; subprocess.run([sys.executable, '--version'])",
        "import os, sys; os.execv(sys.executable, [sys.executable])",
        "import socket; socket.socket()",
        "import socket; socket.create_connection(('127.0.0.1', 1))",
        "import os; os.sched_setaffinity(0, {0})",
        "import os; os.memfd_create('x')",
        "import os; os.mkfifo('/tmp/x')",
        "import os; os.setpriority(os.PRIO_PROCESS, 0, 19)",
    ],
)
def test_it_can_do_no_more(run_guest: Callable[..., Any], act: str) -> None:
    ended = run_guest(LOCK + act)
    assert ended.code == 1
    assert "Operation not permitted" in ended.said


def test_threads_that_ran_before_the_lock_are_bound_too(run_guest: Callable[..., Any]) -> None:
    ended = run_guest(
        """
import os, threading
from capsule.sandbox.lock import lock_down
locked, tried = threading.Event(), []
def try_to_fork():
    locked.wait()
    try:
        os.fork()
    except PermissionError:
        tried.append("denied")
thread = threading.Thread(target=try_to_fork)
thread.start()
lock_down()
locked.set()
thread.join()
print(tried)
"""
    )
    assert ended.said.splitlines()[-1] == "['denied']"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the other set of calls is x86's")
def test_a_32_bit_call_kills(run_guest: Callable[..., Any]) -> None:
    ended = run_guest(
        LOCK
        + """
import ctypes, mmap
code = mmap.mmap(-1, 4096, flags=0x22, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)  # private
code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # getpid by interrupt 0x80
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
print("survived")
"""
    )
    assert "survived" not in ended.said
    assert ended.code in (128 + signal.SIGSYS, 128 + signal.SIGSEGV)  # the latter where the kernel has no such calls


@pytest.mark.parametrize(
    ("act", "refusal"),
    [
        ("bytearray(400 << 20)", "MemoryError"),
        ("import mmap; mmap.mmap(-1, 4 << 30)", "Operation not permitted"),
        ("import mmap; mmap.mmap(-1, 4 << 30, prot=0, flags=mmap.MAP_PRIVATE | 0x20)", "Cannot allocate memory"),
        ("import os; [os.open('/', 0) for _ in range(100)]", "Too many open files"),
        ("open('/tmp/a', 'wb').write(bytes(9 << 20))", "File too large"),
        ("[open(f'/tmp/{n}', 'wb').write(bytes(4 << 20)) for n in range(9)]", "No space left on device"),
        ("[open(f'/dev/shm/{n}', 'wb').write(bytes(4 << 20)) for n in range(9)]", "No space left on device"),
    ],
)
def test_limits_hold(run_guest: Callable[..., Any], act: str, refusal: str) -> None:
    limits = Limits(memory_bytes=200 * MIB, open_files=64, file_size_bytes=8 * MIB, scratch_bytes=16 * MIB)
    ended = run_guest(LOCK + act, limits=limits)
    assert refusal in ended.said


def test_threads_are_bounded(run_guest: Callable[..., Any]) -> None:
    ended = run_guest(
        LOCK
        + """
import threading
done = threading.Event()
threads = []
try:
    for _ in range(40):
        thread = threading.Thread(target=done.wait, daemon=True)
        thread.start()
        threads.append(thread)
except RuntimeError as error:
    print(len(threads), error)
done.set()
""",
        limits=Limits(processes=16),
    )
    assert "15 can't start new thread" in ended.said
