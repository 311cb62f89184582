"""The brain's life on its link: greeting, loading, heartbeats, shutdown, and a kernel that breaks the protocol."""

import asyncio
import struct
import time

import msgspec
import pytest

from capsule.errors import FrameInvalid
from capsule.frames import Hello, frame
from runtime.abi import link
from runtime.abi.errors import CognetAccessedBeforeLoad, CognetInvalid

IDLE = "\n    @loop\n    async def think(wake): wake.stop()"


async def test_it_tells_what_it_folded_while_it_booted(kernel_of, lines):
    kernel = kernel_of("\n    @on('boot')\n    def fold(): assert len(list(kernel.store.session.get())) == 700" + IDLE)
    kernel.resident = 300
    for number in range(700):
        kernel.log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": number}})
    await kernel.start()
    assert kernel.all(link.Loaded)[0].folded == 700


async def test_nothing_resident_is_no_hindrance(kernel_of, lines):
    kernel = kernel_of("\n    @on('boot')\n    def fold(): assert len(list(kernel.store.session.get())) == 3" + IDLE)
    kernel.resident = 0
    for _ in range(3):
        kernel.log.admit("cognet:output:text", {"channel": "a", "content": "x"})
    await kernel.start()
    kernel.say("live")
    await kernel.stop()


@pytest.mark.parametrize(
    ("main", "kind", "says"),
    [
        ("", CognetInvalid, "no loop"),
        (IDLE + "\n    kernel.clock()", CognetAccessedBeforeLoad, "main.py"),
        ("\n    @on('boot')\n    async def b(): raise KeyError('lost')" + IDLE, CognetInvalid, "KeyError"),
        ("\n    @on('boot')\n    def b(): raise SystemExit(2)" + IDLE, CognetInvalid, "SystemExit"),
        ("\n    @on('boot')\n    async def b(): await kernel.store.get('x')" + IDLE, LookupError, "no key 'x'"),
    ],
)
async def test_a_cognet_that_cannot_be_loaded_is_told_and_ends_the_brain(kernel_of, main, kind, says):
    kernel = kernel_of(main)
    await kernel.start(until_loaded=False)
    with pytest.raises(kind, match=says):
        await asyncio.wait_for(kernel.brain, 20)
    await kernel.until(link.LoadFailed)
    assert says in kernel.all(link.LoadFailed)[0].error.message


async def test_wakes_asked_for_while_booting_begin_when_it_is_loaded(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def first():
        builtins.seen.append(await kernel.wake())
        await asyncio.sleep(0.01)
        builtins.seen.append("booted")
    @loop
    async def think(wake):
        builtins.seen.append("woke")
        wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(link.Ended)
    assert lines == [1, "booted", "woke"]
    assert isinstance(kernel.messages[-3 if kernel.told else -2], link.Loaded | link.Admitted | link.Heartbeat)


async def test_it_beats_while_it_boots_and_after(kernel_of):
    kernel = kernel_of("\n    @on('boot')\n    async def b(): await asyncio.sleep(0.05)" + IDLE, heartbeat_s=0.04)
    await kernel.start()
    assert kernel.all(link.Heartbeat)
    await kernel.until(link.Heartbeat, len(kernel.all(link.Heartbeat)) + 3)


async def test_a_stop_interrupts_wakes_then_runs_the_shutdown_hooks(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def first(): await kernel.wake()
    @on("shutdown")
    async def one():
        builtins.seen.append("one")
        raise ValueError("the other hooks have their turn")
    @on("shutdown")
    def two(): builtins.seen.append("two")
    @loop
    async def think(wake):
        kernel.emit("cognet:log:info", {"message": "ready"})
        try:
            await asyncio.Event().wait()
        finally:
            await kernel.output("cognet:output:text", {"channel": "a", "content": "last words"})
            builtins.seen.append("cleaned up")
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    await kernel.stop()
    assert lines == ["cleaned up", "one", "two"]
    assert kernel.all(link.Ended)[0].outcome == "interrupted"
    assert isinstance(kernel.messages[-1] if not kernel.told else kernel.all(link.Stopped)[0], link.Stopped)


async def test_a_wake_and_a_hook_that_will_not_end_do_not_hold_the_stop(kernel_of, lines):
    kernel = kernel_of(
        """
    @on("boot")
    async def first(): await kernel.wake()
    @on("shutdown")
    async def never(): await asyncio.Event().wait()
    @loop
    async def think(wake):
        kernel.emit("cognet:log:info", {"message": "ready"})
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
                if wake.life.is_open and tries.append(1) or len(tries) > 50: return
    tries = []
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    await kernel.stop(grace_s=0.1)
    assert kernel.all(link.Stopped)


async def test_a_stop_while_booting_ends_it(kernel_of):
    kernel = kernel_of("\n    @on('boot')\n    async def b(): await asyncio.Event().wait()" + IDLE)
    await kernel.start(until_loaded=False)
    await kernel.until(link.Heartbeat)
    await kernel.stop(grace_s=0.2)
    assert not kernel.all(link.Loaded)


async def test_after_the_end_every_verb_says_so(kernel_of):
    from runtime import errors
    from runtime import kernel as verbs

    kernel = kernel_of(IDLE)
    await kernel.start()
    assert verbs.clock().wakes == 0
    await kernel.stop()
    with pytest.raises(errors.KernelStopping):
        verbs.clock()


GARBAGE = [
    b"\xff\xff\xff\xff",
    frame(b"\xc1"),
    frame(b""),
    frame(msgspec.msgpack.encode(["Nonsense", 1])),
    frame(msgspec.msgpack.encode(["Reply", 999, None, None])),
    frame(msgspec.msgpack.encode(["Entries", [[7, "cognet:stimulus:text", b"{}"]]])),
    struct.pack(">I", 3) + b"\xc3\xc3\xc3",
]


@pytest.mark.parametrize("bytes_", GARBAGE)
async def test_a_kernel_that_breaks_the_protocol_ends_the_brain(kernel_of, bytes_):
    kernel = kernel_of(IDLE)
    await kernel.start()
    kernel.transport.write(bytes_)
    with pytest.raises(FrameInvalid):
        await asyncio.wait_for(kernel.brain, 20)


async def test_another_protocol_is_refused(kernel_of, small_kernel):
    kernel = kernel_of(IDLE)
    kernel.connection_made = lambda transport: (
        setattr(kernel, "transport", transport),
        kernel.write(Hello(protocol="axon-link/9")),
    )
    await kernel.start(until_loaded=False)
    with pytest.raises(FrameInvalid, match="axon-link/9"):
        await asyncio.wait_for(kernel.brain, 20)


def _until_said(lines):
    while not lines:
        time.sleep(0.01)


async def test_telemetry_is_bounded_while_the_kernel_does_not_read(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def first(): await kernel.wake()
    @loop
    async def think(wake):
        wake.stop()
        for _ in range(200):
            for _ in range(100):
                kernel.emit("cognet:log:info", {"message": "x" * 1000})
            await asyncio.sleep(0)
        builtins.seen.append("done")
    """,
        heartbeat_s=0.1,
    )
    ends = await kernel.sockets()
    from runtime.brain.brain import run_brain

    kernel.brain = asyncio.get_running_loop().create_task(run_brain(*ends))
    await kernel.until(link.Loaded)
    kernel.transport.pause_reading()
    await asyncio.wait_for(asyncio.to_thread(_until_said, lines), 20)
    kernel.transport.resume_reading()
    await kernel.until(link.Ended)
    assert len(kernel.told) < 20_000
    assert kernel.told
    await kernel.until(lambda: any("dropped" in e.data["message"] for e in kernel.spans("cognet:log:warning")))
