"""A continuous cognet's wakes: they overlap, are numbered across restarts, wait above the bound, and end in order."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.abi import link
from runtime.abi.errors import BrainLost

OVERLAPPING = """
    import builtins
    @on("boot")
    async def first():
        for _ in range({count}):
            builtins.seen.append(await kernel.wake())
    open_now = set()
    @loop
    async def think(wake):
        open_now.add(wake.ordinal)
        while len(open_now) < {count}: await asyncio.sleep(0.001)
        wake.stop()
"""


async def test_wakes_overlap(kernel_of, lines):
    kernel = kernel_of(OVERLAPPING.format(count=5))
    await kernel.start()
    await kernel.until(link.Ended, 5)
    assert lines == [1, 2, 3, 4, 5]
    assert {e.outcome for e in kernel.all(link.Ended)} == {"complete"}
    assert max(e.overlap for e in kernel.all(link.Admitted)) == 5


async def test_to_wake_resolves_when_it_is_admitted_and_never_when_it_ends(kernel_of, lines):
    kernel = kernel_of("""
    import builtins
    @on("boot")
    async def first(): await kernel.wake()
    admitted = asyncio.Event()
    @loop
    async def think(wake):
        wake.stop()
        if wake.ordinal == 1:
            builtins.seen.append(await kernel.wake())
            admitted.set()
        else:
            await admitted.wait()
    """)
    await kernel.start()
    await kernel.until(link.Ended, 2)
    assert lines == [2]


async def test_stimuli_never_wake_a_continuous_cognet(kernel_of, lines):
    kernel = kernel_of("""
    import builtins
    tasks = []
    async def drive():
        while len(kernel.store.session.get()) < 20: await asyncio.sleep(0)
        builtins.seen.append(kernel.clock().wakes)
        await kernel.wake()
    @on("boot")
    def start(): tasks.append(asyncio.ensure_future(drive()))
    @loop
    async def think(wake):
        wake.stop()
        builtins.seen.append(len(wake.stimuli))
    """)
    await kernel.start()
    for number in range(10):
        kernel.say(f"word {number}")
        kernel.sense(number)
    await kernel.until(link.Ended)
    assert lines == [0, 20]


async def test_a_clock_that_was_read_stays_while_wakes_go_on(kernel_of, lines):
    kernel = kernel_of("""
    import builtins
    @on("boot")
    async def first(): await kernel.wake()
    @loop
    async def think(wake):
        wake.stop()
        if wake.ordinal == 1:
            read = kernel.clock()
            await kernel.wake()
            builtins.seen.append((read.wakes, kernel.clock().wakes))
    """)
    await kernel.start()
    await kernel.until(link.Ended, 2)
    assert lines == [(1, 2)]


async def test_the_ordinal_goes_on_when_the_brain_is_restarted(kernel_of, lines):
    kernel = kernel_of(OVERLAPPING.format(count=2))
    await kernel.start()
    await kernel.until(link.Ended, 2)
    await kernel.kill()
    await kernel.start()
    await kernel.until(link.Ended, 2)
    assert [e.ordinal for e in kernel.all(link.Admitted)] == [3, 4]
    assert lines == [1, 2, 3, 4]


async def test_above_the_bound_admission_waits_and_that_is_told(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    go = asyncio.Event()
    @on("boot")
    async def start():
        asyncio.create_task(third())
    async def third():
        for _ in range(3):
            builtins.seen.append(await kernel.wake())
    @loop
    async def think(wake):
        wake.stop()
        while not kernel.store.session.get(): await asyncio.sleep(0.001)
    """,
        max_overlap=2,
    )
    await kernel.start()
    missed = await kernel.until(link.Missed)
    assert (missed.reason, lines) == ("overlap", [1, 2])
    kernel.say("go on")
    await kernel.until(link.Ended, 3)
    assert lines == [1, 2, 3]
    assert max(e.overlap for e in kernel.all(link.Admitted)) == 2


async def test_an_impatient_caller_gives_its_place_back(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def start():
        asyncio.create_task(impatient())
    async def impatient():
        await kernel.wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await kernel.wake()
        kernel.emit("cognet:log:info", {"message": "gave up"})
        builtins.seen.append(await kernel.wake())
    @loop
    async def think(wake):
        wake.stop()
        while not kernel.store.session.get(): await asyncio.sleep(0.001)
    """,
        max_overlap=1,
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    kernel.say("go on")
    await kernel.until(link.Ended, 2)
    assert lines == [2]


async def test_a_restarted_brain_is_given_new_stimuli_only_and_folds_the_rest(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def start(): every(0.002, kernel.wake)
    @loop
    async def think(wake):
        wake.stop()
        if wake.stimuli:
            log = kernel.store.session.get()
            builtins.seen.append(([s.seq for s in wake.stimuli], [e.seq for e in log]))
    """
    )
    kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "user"}, "content": "before"})
    await kernel.start()
    kernel.say("after")
    await kernel.until(lambda: lines)
    assert lines[0] == ([2], [1, 2])


async def test_transient_stimuli_reach_the_wake_and_not_the_log(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def start(): every(0.002, kernel.wake)
    @loop
    async def think(wake):
        wake.stop()
        builtins.seen.extend((s.seq, s.data.source.channel) for s in wake.stimuli)
        assert not kernel.store.session.get()
    """
    )
    await kernel.start()
    kernel.transient(1.0)
    await kernel.until(lambda: lines)
    assert lines == [(0, "fast")]


FOLDING = """
    import builtins
    from random import Random
    entries, seq = [], 0
    def sync():
        global seq
        for entry in kernel.store.session.get(after=seq):
            entries.append(entry)
            seq = entry.time.seq
    @on("boot")
    async def start():
        every(0.001, kernel.wake)
    @loop
    async def think(wake):
        random = Random(wake.ordinal)
        sync()
        builtins.given.extend(s.seq for s in wake.stimuli)
        await asyncio.sleep(random.choice([0, 0.001, 0.004]))
        if random.random() < 0.5:
            await kernel.output("cognet:output:text", {"channel": "a", "content": str(wake.ordinal)})
        sync()
        if random.random() < 0.2:
            raise ValueError("by chance")
        builtins.equal.append(entries == kernel.store.session.get(upto=seq))
        if random.random() < 0.7 or wake.tick > 3:
            wake.stop()
"""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.sampled_from(["say", "sense", "interrupt", "pause", "restart", "output"]), max_size=25),
    window=st.integers(1, 40),
)
def test_any_interleaving_leaves_the_resident_model_equal_to_the_log(small_kernel, write, steps, window):
    asyncio.run(_interleave(small_kernel.SmallKernel(write(FOLDING), window_entries=window), steps))


async def _interleave(kernel, steps):
    import builtins

    builtins.equal, builtins.given = [], []
    stimuli = []
    await kernel.start()
    for step in [*steps, "pause"]:
        if step == "say":
            stimuli.append(kernel.say("hi"))
        elif step == "sense":
            stimuli.append(kernel.sense(1.0))
        elif step == "interrupt":
            kernel.interrupt()
        elif step == "restart":
            await kernel.until(lambda: set(stimuli) <= set(builtins.given))
            await kernel.kill()
            await kernel.start()
        elif step == "output":
            await kernel.until(link.Call, len(kernel.all(link.Call)) + 1)
        else:
            await kernel.until(link.Ended, len(kernel.all(link.Ended)) + 2)
    done = len(builtins.equal) + 2
    await kernel.until(lambda: set(stimuli) <= set(builtins.given) and len(builtins.equal) >= done)
    await kernel.kill()
    assert all(builtins.equal)
    assert builtins.given == stimuli
    del builtins.equal, builtins.given


async def test_the_kernel_lost_ends_the_brain_and_its_wakes(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def first(): await kernel.wake()
    @loop
    async def think(wake):
        wake.stop()
        try:
            kernel.emit("cognet:log:info", {"message": "ready"})
            await kernel.output("cognet:output:text", {"channel": "a", "content": "x"})
        except errors.BrainLost as error:
            builtins.seen.append(error.code)
            raise
    """
    )
    kernel.hold_outputs = True
    await kernel.start()
    await kernel.until(lambda: kernel.held)
    kernel.transport.abort()
    with pytest.raises(BrainLost):
        await asyncio.wait_for(kernel.brain, 20)
    assert lines in (["BRAIN_LOST"], [])
