"""``python -m runtime.brain``: a process of its own, which ends with its kernel and can be killed any time."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import runtime
from runtime.abi import link

ROOT = Path(runtime.__file__).parents[1]
COUNTING = """
    state = {"entries": 0, "seq": 0}
    def sync():
        for entry in kernel.store.session.get(after=state["seq"]):
            state["entries"] += 1
            state["seq"] = entry.time.seq
    @on("boot")
    async def start():
        sync()
        every(0.01, kernel.wake)
    @loop
    async def think(wake):
        sync()
        reading = {"value": state["entries"]}
        await kernel.output("cognet:output:field", {"channel": "entries", "reading": reading})
        wake.stop()
"""


def spawn(ends):
    fds = [end.fileno() for end in ends]
    arguments = [sys.executable, "-m", "runtime.brain", *map(str, fds)]
    process = subprocess.Popen(arguments, pass_fds=fds, cwd=ROOT, stderr=subprocess.PIPE)
    for end in ends:
        end.close()
    return process


@pytest.fixture
async def started(kernel_of):
    """Start a cognet in a process of its own."""
    processes = []

    async def start(kernel):
        ends = await kernel.sockets()
        process = spawn(ends)
        processes.append(process)
        return process

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait(20)
        process.stderr.close()


async def ended(process) -> int:
    return await asyncio.wait_for(asyncio.to_thread(process.wait, 20), 30)


async def test_it_serves_wakes_until_it_is_stopped(kernel_of, started):
    kernel = kernel_of(COUNTING)
    process = await started(kernel)
    await kernel.until(link.Ended, 5)
    kernel.write(link.Stop(2.0))
    await kernel.until(link.Stopped)
    assert await ended(process) == 0


async def test_killed_at_any_moment_it_folds_again_and_its_model_is_the_log(kernel_of, started):
    kernel = kernel_of(COUNTING)
    for life in range(3):
        process = await started(kernel)
        await kernel.until(link.Ended, 3 + life)
        os.kill(process.pid, signal.SIGKILL)
        assert await ended(process) == -signal.SIGKILL
        await asyncio.wait_for(kernel.closed.wait(), 20)
    outputs = [(e.context.cursor, e.data.reading.value) for e in kernel.log.entries()]
    assert all(cursor == folded for cursor, folded in outputs)
    ordinals = kernel.wakes
    assert ordinals >= 3 + 4 + 5


HANGING = [
    "threading.Thread(target=threading.Event().wait).start()",
    "on('boot')(lambda: asyncio.get_running_loop().run_in_executor(None, threading.Event().wait) and None)",
    "on('boot')(lambda: tasks.append(asyncio.create_task(stubborn())))",
]


@pytest.mark.parametrize("hanging", HANGING)
async def test_it_ends_when_the_kernel_is_gone_whatever_hangs_in_it(kernel_of, started, hanging):
    kernel = kernel_of(
        f"""
    import threading
    tasks = []
    async def stubborn():
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
    {hanging}
    """
        + COUNTING
    )
    process = await started(kernel)
    await kernel.until(link.Ended, 2)
    kernel.transport.abort()
    assert await ended(process) == 1


async def test_ctrl_c_at_the_terminal_is_the_kernels_affair(kernel_of, started):
    kernel = kernel_of(COUNTING)
    process = await started(kernel)
    await kernel.until(link.Ended, 2)
    os.kill(process.pid, signal.SIGINT)
    await kernel.until(link.Ended, len(kernel.all(link.Ended)) + 5)
    assert process.poll() is None


async def test_a_cognet_that_cannot_be_loaded_ends_it_with_the_reason(kernel_of, started):
    kernel = kernel_of("")
    process = await started(kernel)
    await kernel.until(link.LoadFailed)
    assert await ended(process) == 1
    assert kernel.all(link.LoadFailed)[0].error.code == "COGNET_INVALID"


async def test_no_file_is_opened_and_nothing_imported_while_wakes_are_served(kernel_of, started):
    kernel = kernel_of(
        """
    import sys
    found = []
    def watch(event, arguments):
        if event in ("open", "import", "os.listdir", "os.scandir", "compile", "socket.connect"):
            found.append(f"{event} {arguments[0]!r}")
    async def slow():
        async with phase("slow"):
            await asyncio.sleep(0.01)
            raise ValueError("spawned work that fails")
    @on("boot")
    async def start():
        every(0.005, kernel.wake)
        asyncio.get_running_loop().call_later(0.02, lambda: 1 / 0)
    @loop
    async def think(wake):
        wake.stop()
        if wake.ordinal == 1:
            sys.addaudithook(watch)
        async with phase("sense"):
            history = kernel.store.session.get()
            stimuli = list(wake.stimuli)
        wake.spawn(slow())
        if wake.ordinal == 5:
            await kernel.store.set("checkpoint", {"at": wake.ordinal})
            await kernel.store.get("checkpoint")
            with contextlib.suppress(errors.StoreKeyUndeclared):
                await kernel.store.get("undeclared")
            raise KeyError("a wake that fails")
        if wake.ordinal == 40:
            await kernel.output("cognet:output:text", {"channel": "found", "content": "; ".join(found)})
    """
    )
    await started(kernel)
    await kernel.until(link.Ended, 2)
    kernel.say("hi")
    kernel.interrupt()
    await kernel.until(lambda: [e for e in kernel.log.entries() if e.type == "cognet:output:text"])
    (said,) = [e for e in kernel.log.entries() if e.type == "cognet:output:text"]
    assert said.data.content == ""


async def test_what_nobody_awaits_is_told(kernel_of, started):
    kernel = kernel_of(
        """
    tasks = []
    async def bad(): raise ValueError("unheard")
    @on("boot")
    async def start():
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    @loop
    async def think(wake): wake.stop()
    """
    )
    await started(kernel)
    await kernel.until(lambda: kernel.spans("cognet:log:error"))
    assert "ZeroDivisionError" in kernel.spans("cognet:log:error")[0].data["message"]


@pytest.mark.parametrize("arguments", [[], ["3"], ["a", "b"], ["3", "4", "5"]])
def test_wrong_arguments_are_a_usage_error(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "runtime.brain", *arguments], cwd=ROOT, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"usage:")
