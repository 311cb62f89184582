"""Where each verb works: in a wake or hook all of them, outside only those that need no wake."""

from runtime.abi import link

OUTSIDE = """
    import builtins
    def attempt(name, call):
        async def go():
            try:
                result = call()
                if hasattr(result, "__await__"):
                    await result
                builtins.seen.append((name, "fine"))
            except errors.AxonError as error:
                builtins.seen.append((name, error.code))
        return go()
    VERBS = {
        "output": lambda: kernel.output("cognet:output:text", {"channel": "a", "content": "x"}),
        "store.get": lambda: kernel.store.get("checkpoint"),
        "store.set": lambda: kernel.store.set("checkpoint", {}),
        "run": lambda: kernel.run("1"),
        "base": lambda: kernel.base(),
        "scope": lambda: kernel.scope(),
        "engine": lambda: kernel.engine.has("main"),
        "fault": lambda: kernel.fault(code="A", message="b"),
        "knowledge.list": lambda: kernel.knowledge.list(),
        "knowledge.write": lambda: kernel.knowledge.write("a", "b"),
        "knowledge.read": lambda: kernel.knowledge.read("a"),
        "knowledge.remove": lambda: kernel.knowledge.remove("a"),
        "emit": lambda: kernel.emit("cognet:log:info", {"message": "x"}),
        "clock": lambda: kernel.clock(),
        "store.session.get": lambda: list(kernel.store.session.get()),
        "phase": lambda: phase("a").__aenter__(),
    }
    async def try_all():
        for name, call in VERBS.items():
            await attempt(name, call)
        builtins.seen.append(("all", "tried"))
"""
ANYWHERE = {"emit", "clock", "store.session.get", "phase"}


def seen_by(lines, *, needs_scope: str) -> None:
    assert lines[-1] == ("all", "tried")
    for name, outcome in lines[:-1]:
        assert outcome == ("fine" if name in ANYWHERE else needs_scope), name


async def test_in_a_hook_every_verb_works(kernel_of, lines):
    kernel = kernel_of(OUTSIDE + "\n    on('boot')(try_all)\n    @loop\n    async def think(wake): wake.stop()")
    await kernel.start()
    seen_by(lines, needs_scope="fine")


async def test_in_a_wake_they_work_too(kernel_of, lines):
    kernel = kernel_of(
        OUTSIDE
        + """
    on('boot')(kernel.wake)
    @loop
    async def think(wake):
        wake.stop()
        await try_all()
    """
    )
    await kernel.start()
    await kernel.until(link.Ended)
    seen_by(lines, needs_scope="fine")


async def test_a_task_that_outlives_its_wake_is_outside(kernel_of, lines):
    kernel = kernel_of(
        OUTSIDE
        + """
    tasks = []
    ended = asyncio.Event()
    async def outlive():
        await ended.wait()
        await try_all()
    @on('boot')
    async def start():
        await kernel.wake()
    @loop
    async def think(wake):
        wake.stop()
        if wake.ordinal == 1:
            tasks.append(asyncio.create_task(outlive()))
            await kernel.wake()
        else:
            ended.set()
            while ("all", "tried") not in builtins.seen:
                await asyncio.sleep(0.001)
    """
    )
    await kernel.start()
    await kernel.until(link.Ended, 2)
    seen_by(lines, needs_scope="SYSCALL_OUTSIDE_WAKE")


async def test_a_bare_timer_callback_is_outside_but_may_wake(kernel_of, lines):
    kernel = kernel_of(
        OUTSIDE
        + """
    tasks = []
    async def from_timer():
        await try_all()
        await kernel.wake()
    def fire():
        tasks.append(asyncio.get_running_loop().create_task(from_timer()))
    @on('boot')
    def start():
        asyncio.get_running_loop().call_later(0.001, fire)
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(link.Ended)
    seen_by(lines, needs_scope="SYSCALL_OUTSIDE_WAKE")


async def test_a_task_within_its_wake_is_inside(kernel_of, lines):
    kernel = kernel_of(
        OUTSIDE
        + """
    on('boot')(kernel.wake)
    @loop
    async def think(wake):
        wake.stop()
        await asyncio.gather(*(asyncio.create_task(attempt(n, VERBS[n])) for n in ("output", "store.get")))
    """
    )
    await kernel.start()
    ended = await kernel.until(link.Ended)
    assert [outcome for _, outcome in lines] == ["fine", "fine"]
    assert {call.wake_id for call in kernel.all(link.Call)} == {ended.wake_id}


async def test_spawning_on_an_ended_wake_is_refused(kernel_of, lines):
    kernel = kernel_of(
        OUTSIDE
        + """
    wakes = []
    @on('boot')
    async def start():
        await kernel.wake()
    @loop
    async def think(wake):
        wake.stop()
        wakes.append(wake)
        if wake.ordinal == 1:
            await kernel.wake()
        else:
            while wakes[0].life.is_open: await asyncio.sleep(0.001)
            await attempt("spawn", lambda: wakes[0].spawn(try_all()))
    """
    )
    await kernel.start()
    await kernel.until(link.Ended, 2)
    assert lines == [("spawn", "SYSCALL_OUTSIDE_WAKE")]
