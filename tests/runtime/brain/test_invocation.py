"""An invocation cognet: one wake at a time, for masked stimuli, never for its own echo, none left unanswered."""

from runtime.abi import link

ECHO = """
    import builtins
    @loop
    async def think(wake):
        texts = [s.data.content for s in wake.stimuli if s.type.endswith("text")]
        builtins.seen.append(texts)
        for text in texts:
            await kernel.output("cognet:output:text", {"channel": "voice", "content": text})
        wake.stop()
"""


async def test_a_masked_stimulus_wakes_and_the_end_is_settled(kernel_of, lines):
    kernel = kernel_of(ECHO, mode="invocation")
    await kernel.start()
    kernel.say("hi")
    await kernel.until(lambda: kernel.settled_seq)
    assert lines == [["hi"]]
    assert kernel.settled_seq == 2  # the stimulus and the wake's own output


async def test_other_stimuli_do_not_wake_but_are_delivered(kernel_of, lines):
    kernel = kernel_of(ECHO.replace("if s.type.endswith('text')", ""), mode="invocation", wake_on=["text:user"])
    await kernel.start()
    kernel.sense(1.0)
    kernel.say("not to the agent", channel="radio")
    kernel.say("hi")
    await kernel.until(link.Ended)
    assert lines == [["not to the agent", "hi"]]
    assert kernel.wakes == 1


async def test_its_own_output_never_wakes_it(kernel_of, lines):
    kernel = kernel_of(ECHO, mode="invocation")
    await kernel.start()
    kernel.say("one")
    await kernel.until(link.Ended)
    kernel.say("two")
    await kernel.until(link.Ended, 2)
    assert lines == [["one"], ["two"]]


async def test_arrivals_go_to_the_next_tick_of_the_open_wake(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @loop
    async def think(wake):
        builtins.seen.append([s.data.content for s in wake.stimuli])
        if wake.tick == 2:
            wake.stop()
        else:
            kernel.emit("cognet:log:info", {"message": "ready"})
            while len(kernel.store.session.get()) < 2: await asyncio.sleep(0.001)
    """,
        mode="invocation",
    )
    await kernel.start()
    kernel.say("one")
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    kernel.say("two")
    await kernel.until(link.Ended)
    assert lines == [["one"], ["two"]]
    assert kernel.wakes == 1


async def test_masked_leftovers_admit_one_more_wake(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @loop
    async def think(wake):
        builtins.seen.append([s.data.content for s in wake.stimuli])
        wake.stop()
        kernel.emit("cognet:log:info", {"message": "ready"})
        while len(kernel.store.session.get()) < 3: await asyncio.sleep(0.001)
    """,
        mode="invocation",
    )
    await kernel.start()
    kernel.say("one")
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    kernel.say("two")
    kernel.say("three")
    await kernel.until(link.Ended, 2)
    assert lines == [["one"], ["two", "three"]]
    assert [e.overlap for e in kernel.all(link.Admitted)] == [1, 1]


async def test_a_wake_that_fails_is_settled_and_not_repeated(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @loop
    async def think(wake):
        builtins.seen.append([s.data.content for s in wake.stimuli])
        raise ValueError("poison")
    """,
        mode="invocation",
    )
    await kernel.start()
    kernel.say("one")
    await kernel.until(lambda: kernel.settled_seq == 1)
    await kernel.kill()
    await kernel.start()
    kernel.say("two")
    await kernel.until(link.Ended)
    assert lines == [["one"], ["two"]]


async def test_a_wake_hook_that_fails_does_not_spin(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("wake")
    def bad(): raise ValueError("plugin")
    @loop
    async def think(wake): wake.stop()
    """,
        mode="invocation",
    )
    await kernel.start()
    kernel.say("one")
    await kernel.until(link.Ended)
    kernel.say("two")
    await kernel.until(link.Ended, 2)
    assert kernel.wakes == 2


async def test_what_a_crash_left_unanswered_admits_one_wake(kernel_of, lines):
    kernel = kernel_of(ECHO, mode="invocation")
    kernel.say = lambda text: kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "user"}, "content": text})
    kernel.say("answered")
    kernel.settled_seq = 1
    kernel.say("one")
    kernel.log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": 1}})
    kernel.say("two")
    await kernel.start()
    await kernel.until(lambda: kernel.settled_seq > 1)
    assert lines == [["one", "two"]]
    assert kernel.wakes == 1


async def test_what_lies_beyond_the_window_is_found_and_delivered(kernel_of, lines):
    kernel = kernel_of(ECHO, mode="invocation", window_entries=4)
    kernel.resident = 2
    kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "user"}, "content": "old"})
    for _ in range(600):
        kernel.log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": 1}})
    await kernel.start()
    await kernel.until(link.Ended)
    assert lines == [["old"]]


async def test_a_closed_action_beyond_what_was_settled_admits_one_wake(kernel_of, lines):
    kernel = kernel_of(ECHO, mode="invocation")
    kernel.log.admit("cognet:action:result", {"action": "a", "ok": False}, wake_id="w")
    await kernel.start()
    await kernel.until(lambda: kernel.settled_seq)
    assert (lines, kernel.wakes) == ([[]], 1)


async def test_a_block_that_no_wake_asked_for_wakes_nobody(kernel_of, lines):
    kernel = kernel_of(ECHO, mode="invocation")
    kernel.log.admit("cognet:action:result", {"action": "a", "ok": True})
    await kernel.start()
    kernel.say("new")
    await kernel.until(link.Ended)
    assert lines == [["new"]]


async def test_nothing_unanswered_admits_none(kernel_of, lines):
    kernel = kernel_of(ECHO, mode="invocation")
    kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "user"}, "content": "old"})
    kernel.log.admit("cognet:action:result", {"action": "a", "ok": True})
    kernel.settled_seq = 2
    await kernel.start()
    kernel.say("new")
    await kernel.until(link.Ended)
    assert lines == [["new"]]


async def test_waking_itself_is_refused(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    async def first():
        every(0.001, kernel.wake)
        try:
            await kernel.wake()
        except errors.WakeUnavailable as error:
            builtins.seen.append(error.code)
    @loop
    async def think(wake): wake.stop()
    """,
        mode="invocation",
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:error"))
    kernel.say("hi")
    await kernel.until(link.Ended)
    assert lines == ["WAKE_UNAVAILABLE"]
    assert len(kernel.spans("cognet:log:error")) == 1


async def test_a_wake_cut_short_by_the_shutdown_is_answered_at_the_next_start(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @loop
    async def think(wake):
        builtins.seen.append([s.data.content for s in wake.stimuli])
        kernel.emit("cognet:log:info", {"message": "ready"})
        await asyncio.Event().wait()
    """,
        mode="invocation",
    )
    await kernel.start()
    kernel.say("one")
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    await kernel.stop()
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    assert lines == [["one"], ["one"]]
    assert kernel.settled_seq == 0


async def test_a_transient_stimulus_wakes_too(kernel_of, lines):
    kernel = kernel_of(
        "\n    import builtins\n    @loop\n    async def think(wake):\n"
        "        builtins.seen.append([s.seq for s in wake.stimuli])\n        wake.stop()",
        mode="invocation",
        wake_on=["field"],
    )
    await kernel.start()
    kernel.transient(1.0)
    await kernel.until(link.Ended)
    assert lines == [[0]]
    assert not kernel.log.rows or kernel.log.rows[0].type == "axon:agent:settled"
