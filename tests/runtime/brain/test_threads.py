"""Work that a cognet gives to a thread: what works there, and that it never reads a wrong entry."""

from runtime.abi import link


async def test_a_thread_may_narrate_and_read_the_log(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    on("boot")(kernel.wake)
    def work():
        with phase("in a thread"):
            kernel.emit("cognet:log:info", {"message": "from a thread"})
            return [entry.time.seq for entry in kernel.store.session.get()]
    @loop
    async def think(wake):
        wake.stop()
        builtins.seen.append(await asyncio.to_thread(work))
    """
    )
    for number in range(3):
        kernel.log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": number}})
    await kernel.start()
    ended = await kernel.until(link.Ended)
    assert (ended.outcome, lines) == ("complete", [[1, 2, 3]])
    await kernel.until(lambda: kernel.spans("cognet:tick:complete"))
    (said,) = kernel.spans("cognet:log:info")
    (span,) = kernel.spans("cognet:phase:complete")
    assert said.wake_id == span.wake_id == ended.wake_id
    assert span.data["parent"] == 1


async def test_a_thread_that_reads_while_the_window_moves_gets_the_log(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    on("boot")(kernel.wake)
    def fold():
        for _ in range(20):
            for expected, entry in enumerate(kernel.store.session.get(), 1):
                assert entry.time.seq == expected
                assert entry.data.reading.value == expected
        return expected
    @loop
    async def think(wake):
        wake.stop()
        builtins.seen.append(await asyncio.to_thread(fold))
    """,
        window_entries=16,
    )
    kernel.resident = 16
    for number in range(300):
        kernel.log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": number + 1}})
    await kernel.start()
    while not kernel.all(link.Ended):
        kernel.sense(kernel.log.last_seq + 1)
        await kernel.breathe()
    assert kernel.all(link.Ended)[0].outcome == "complete"
    assert lines[0] >= 300
