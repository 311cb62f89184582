"""A wake from beginning to end: ticks, failures, interrupts, spawned work, and what is told of them."""

import pytest

from runtime.abi import link

CLOCKED = """
    import builtins
    @on("boot")
    async def first():
        await kernel.wake()
"""


async def test_ticks_go_on_until_stop(kernel_of, lines):
    kernel = kernel_of(
        CLOCKED
        + """
    @loop
    async def think(wake):
        builtins.seen.append(wake.tick)
        if wake.tick == 3:
            wake.stop()
    """
    )
    await kernel.start()
    ended = await kernel.until(link.Ended)
    assert (ended.outcome, ended.ticks, ended.ordinal) == ("complete", 3, 1)
    assert lines == [1, 2, 3]


async def test_the_bound_ends_a_wake_that_never_stops(kernel_of):
    kernel = kernel_of(CLOCKED + "\n    @loop\n    async def think(wake): pass", max_ticks_per_wake=5)
    await kernel.start()
    ended = await kernel.until(link.Ended)
    assert (ended.outcome, ended.ticks) == ("complete", 5)
    await kernel.until(lambda: kernel.spans("cognet:log:warning"))


async def test_each_tick_sees_what_was_admitted_since_the_last_one(kernel_of, lines):
    kernel = kernel_of(
        CLOCKED
        + """
    @loop
    async def think(wake):
        builtins.seen.append(([s.data.content for s in wake.stimuli], wake.cursor))
        if wake.stimuli and wake.stimuli[-1].data.content == "last":
            wake.stop()
        await asyncio.sleep(0.001)
    """,
        max_ticks_per_wake=100_000,
    )
    await kernel.start()
    kernel.say("one")
    kernel.say("last")
    ended = await kernel.until(link.Ended)
    texts = [text for taken, _ in lines for text in taken]
    assert texts == ["one", "last"]
    assert ended.upto_seq == lines[-1][1] == 2


async def test_a_failed_wake_is_told_with_its_place_and_hurts_no_other(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def first():
        await kernel.wake()
        await kernel.wake()
    @loop
    async def think(wake):
        wake.stop()
        if wake.ordinal == 1:
            raise ValueError("no such thing")
        builtins.seen.append(wake.ordinal)
    """
    )
    await kernel.start()
    await kernel.until(link.Ended, 2)
    failed, complete = sorted(kernel.all(link.Ended), key=lambda ended: ended.ordinal)
    assert (failed.outcome, complete.outcome) == ("failed", "complete")
    assert "ValueError: no such thing" in failed.error
    assert "cognet/main.py:15 in think" in failed.error
    await kernel.until(lambda: kernel.spans("cognet:tick:failed"))
    (event,) = kernel.spans("cognet:tick:failed")
    assert event.wake_id == failed.wake_id
    assert "no such thing" in event.data["error"]
    assert lines == [2]


@pytest.mark.parametrize(
    "what",
    [
        "raise SystemExit(1)",
        "raise asyncio.CancelledError()",
        "raise Evil()",
        "raise Stranger()",
        "raise BaseExceptionGroup('two', [SystemExit(1), ValueError('x')])",
    ],
)
async def test_even_strange_exceptions_only_fail_the_wake(kernel_of, what):
    kernel = kernel_of(
        CLOCKED
        + f"""
    class Stranger(BaseException): pass
    class Evil(Exception):
        def __str__(self): raise RuntimeError("not even a message")
    @loop
    async def think(wake):
        {what}
    """
    )
    await kernel.start()
    ended = await kernel.until(link.Ended)
    assert ended.outcome == "failed"
    assert not kernel.brain.done()


async def test_spans_nest_and_each_has_an_end(kernel_of):
    kernel = kernel_of(
        CLOCKED
        + """
    @loop
    async def think(wake):
        wake.stop()
        async with phase("sense"):
            with system("eyes"):
                pass
            async with system("ears"):
                pass
        async with phase("act"):
            raise KeyError("x")
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:tick:failed"))
    told = [
        (e.type.removeprefix("cognet:"), e.data.get("name", ""), e.data["span"], e.data.get("parent"))
        for e in kernel.told
    ]
    assert told == [
        ("tick:start", "", 1, None),
        ("phase:start", "sense", 2, 1),
        ("system:start", "eyes", 3, 2),
        ("system:complete", "eyes", 3, 2),
        ("system:start", "ears", 4, 2),
        ("system:complete", "ears", 4, 2),
        ("phase:complete", "sense", 2, 1),
        ("phase:start", "act", 5, 1),
        ("phase:failed", "act", 5, 1),
        ("tick:failed", "", 1, None),
    ]
    assert all(e.data["tick"] == 1 and e.wake_id for e in kernel.told)


WAITING = (
    CLOCKED
    + """
    @loop
    async def think(wake):
        wake.stop()
        async with phase("wait"):
            builtins.seen.append("waits")
            await asyncio.Event().wait()
    """
)


async def test_an_interrupted_wake_is_not_a_failed_one(kernel_of, lines):
    kernel = kernel_of(WAITING)
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:phase:start"))
    kernel.interrupt()
    ended = await kernel.until(link.Ended)
    assert (ended.outcome, ended.error) == ("interrupted", None)
    await kernel.until(lambda: kernel.spans("cognet:tick:interrupted"))
    assert kernel.spans("cognet:phase:interrupted")
    assert not kernel.spans("cognet:tick:failed")


async def test_an_interrupt_of_the_past_cancels_nothing(kernel_of, lines):
    kernel = kernel_of(WAITING)
    kernel.log.admit("axon:interrupt", {"by": "test"})
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:phase:start"))
    assert not kernel.all(link.Ended)


async def test_an_interrupt_spares_the_wakes_after_it(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def start():
        every(0.005, kernel.wake)
    @loop
    async def think(wake):
        wake.stop()
        if wake.ordinal == 1:
            await asyncio.Event().wait()
    """
    )
    await kernel.start()
    await kernel.until(link.Admitted, 2)
    kernel.interrupt()
    await kernel.until(lambda: [e for e in kernel.all(link.Ended) if e.ordinal == 1])
    later = kernel.wakes + 2
    await kernel.until(lambda: [e for e in kernel.all(link.Ended) if e.ordinal >= later and e.outcome == "complete"])


async def test_a_wake_interrupted_before_its_first_tick_leaves_its_stimuli(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @loop
    async def think(wake):
        wake.stop()
        builtins.seen.append([s.data.content for s in wake.stimuli])
    """,
        mode="invocation",
    )
    await kernel.start()
    kernel.say("first")
    await kernel.until(link.Ended)
    rows = [
        kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "user"}, "content": "hi"}),
        kernel.log.admit("axon:interrupt", {"by": "test"}),
    ]
    kernel.write(link.Entries(rows))
    await kernel.until(link.Ended, 3)
    assert [(e.outcome, e.ticks) for e in kernel.all(link.Ended)[1:]] == [("interrupted", 0), ("complete", 1)]
    assert lines == [["first"], ["hi"]]


async def test_an_output_called_before_the_interrupt_still_commits(kernel_of):
    kernel = kernel_of(
        CLOCKED
        + """
    @loop
    async def think(wake):
        wake.stop()
        await kernel.output("cognet:output:text", {"channel": "a", "content": "said"})
    """
    )
    kernel.hold_outputs = True
    await kernel.start()
    await kernel.until(lambda: kernel.held)
    kernel.interrupt()
    assert (await kernel.until(link.Ended)).outcome == "interrupted"
    kernel.release()
    kernel.say("the link goes on")
    assert [e.type for e in kernel.log.entries()].count("cognet:output:text") == 1
    assert not kernel.brain.done()


async def test_an_output_may_be_given_as_its_struct(kernel_of):
    kernel = kernel_of(
        CLOCKED
        + """
    from runtime.abi.payloads import FieldOutput, Reading
    @loop
    async def think(wake):
        wake.stop()
        await kernel.output("cognet:output:field", FieldOutput(channel="steer", reading=Reading(value=[1.0, 2.0])))
    """
    )
    await kernel.start()
    assert (await kernel.until(link.Ended)).outcome == "complete"
    assert kernel.log.entries()[0].data.reading.value == [1.0, 2.0]


async def test_what_is_told_is_what_was_true_when_it_was_told(kernel_of):
    kernel = kernel_of(
        CLOCKED
        + """
    @loop
    async def think(wake):
        wake.stop()
        reading, facts = {"value": 1}, {"a": 1}
        sent = asyncio.create_task(kernel.output("cognet:output:field", {"channel": "steer", "reading": reading}))
        kernel.emit("cognet:log:info", {"message": "x", "facts": facts})
        await asyncio.sleep(0)
        reading["value"] = facts["a"] = 2
        await sent
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:tick:complete"))
    assert kernel.log.entries()[0].data.reading.value == 1
    assert kernel.spans("cognet:log:info")[0].data["facts"] == {"a": 1}


async def test_spawned_work_keeps_the_wake_open_and_in_scope(kernel_of, lines):
    kernel = kernel_of(
        CLOCKED
        + """
    go = asyncio.Event()
    async def slow(wake):
        await go.wait()
        await kernel.output("cognet:output:text", {"channel": "thought", "content": "slow"})
    @loop
    async def think(wake):
        if wake.tick == 1:
            wake.spawn(slow(wake))
        else:
            wake.stop()
            asyncio.get_running_loop().call_later(0.01, go.set)
    """
    )
    await kernel.start()
    ended = await kernel.until(link.Ended)
    (call,) = kernel.all(link.Call)
    assert (call.wake_id, ended.outcome, ended.ticks) == (ended.wake_id, "complete", 2)
    assert kernel.messages.index(call) < kernel.messages.index(ended)


async def test_an_interrupt_cancels_spawned_work(kernel_of, lines):
    kernel = kernel_of(
        CLOCKED
        + """
    async def slow():
        try:
            builtins.seen.append("began")
            kernel.emit("cognet:log:info", {"message": "began"})
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            builtins.seen.append("cancelled")
            raise
    @loop
    async def think(wake):
        wake.spawn(slow())
        wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    kernel.interrupt()
    assert (await kernel.until(link.Ended)).outcome == "interrupted"
    assert lines == ["began", "cancelled"]


async def test_spawned_work_that_fails_fails_the_wake_and_nothing_else(kernel_of, lines):
    kernel = kernel_of(
        CLOCKED
        + """
    async def bad():
        raise LookupError("lost")
    async def leaves():
        raise SystemExit(0)
    async def good():
        await asyncio.sleep(0.01)
        builtins.seen.append("good")
    @loop
    async def think(wake):
        wake.stop()
        for work in (bad(), leaves(), good()):
            wake.spawn(work)
    """
    )
    await kernel.start()
    ended = await kernel.until(link.Ended)
    assert ended.outcome == "failed"
    assert "LookupError: lost" in ended.error
    assert lines == ["good"]
    await kernel.until(lambda: len(kernel.spans("cognet:log:error")) == 2)


async def test_a_body_that_swallows_the_interrupt_has_no_further_tick(kernel_of, lines):
    kernel = kernel_of(
        CLOCKED
        + """
    @loop
    async def think(wake):
        kernel.emit("cognet:log:info", {"message": "waits"})
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            builtins.seen.append(wake.interrupted)
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    kernel.interrupt()
    ended = await kernel.until(link.Ended)
    assert (ended.outcome, ended.ticks, lines) == ("interrupted", 1, [True])


async def test_hooks_run_around_the_loop(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    def booted(): builtins.seen.append("boot")
    @on("boot")
    async def first(): await kernel.wake()
    @on("wake")
    async def woke(wake):
        builtins.seen.append(f"wake {wake.ordinal}")
        await kernel.output("cognet:output:text", {"channel": "a", "content": "from a hook"})
    @on("tick")
    def ticked(): builtins.seen.append("tick")
    @on("shutdown")
    async def over():
        builtins.seen.append("shutdown")
        await kernel.store.set("checkpoint", {"at": "the end"})
    @loop
    async def think(wake):
        builtins.seen.append("loop")
        if wake.tick == 2: wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(link.Ended)
    assert kernel.all(link.Call)[0].wake_id is None
    await kernel.stop()
    assert lines == ["boot", "wake 1", "tick", "loop", "tick", "loop", "shutdown"]
    assert kernel.store == {"checkpoint": {"at": "the end"}}


async def test_spans_of_hooks_are_theirs_and_not_the_wakes(kernel_of):
    kernel = kernel_of(
        CLOCKED
        + """
    @on("tick")
    async def look():
        async with phase("hook"):
            pass
    @loop
    async def think(wake):
        wake.stop()
        async with phase("loop"):
            pass
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:tick:complete"))
    started = {e.data["name"]: e for e in kernel.spans("cognet:phase:start")}
    assert (started["hook"].wake_id, started["hook"].data["span"], started["hook"].data.get("parent")) == (
        None,
        1,
        None,
    )
    assert started["loop"].wake_id is not None
    assert (started["loop"].data["span"], started["loop"].data["parent"]) == (2, 1)


async def test_a_failing_tick_hook_fails_its_wake(kernel_of):
    kernel = kernel_of(
        CLOCKED
        + """
    @on("tick")
    def bad(): raise RuntimeError("plugin")
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    ended = await kernel.until(link.Ended)
    assert ended.outcome == "failed"
    assert len(kernel.all(link.Admitted)) == 1


async def test_a_loop_that_never_awaits_lets_the_others_run(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def first():
        await kernel.wake()
        await kernel.wake()
    @loop
    async def think(wake):
        builtins.seen.append(wake.ordinal)
        if wake.tick == 3: wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(link.Ended, 2)
    assert lines == [1, 2, 1, 2, 1, 2]


async def test_the_cursor_of_a_call_is_that_of_the_tick_it_comes_from(kernel_of, lines):
    kernel = kernel_of(
        CLOCKED
        + """
    async def later():
        while wakes[0].tick == 1: await asyncio.sleep(0.001)
        await kernel.output("cognet:output:text", {"channel": "a", "content": "first tick's"})
    wakes = []
    @loop
    async def think(wake):
        wakes.append(wake)
        if wake.tick == 1:
            wake.spawn(later())
            while not kernel.store.session.get(): await asyncio.sleep(0.001)
        elif kernel.store.session.get(after=1):
            wake.stop()
        else:
            await asyncio.sleep(0.001)
    """,
        max_ticks_per_wake=100_000,
    )
    await kernel.start()
    kernel.say("moves the log's end")
    ended = await kernel.until(link.Ended)
    (call,) = kernel.all(link.Call)
    assert (call.cursor, ended.upto_seq) == (0, 2)
