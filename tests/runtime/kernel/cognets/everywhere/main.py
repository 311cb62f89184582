"""Calls every verb from everywhere, well and badly, and says what came of it; afterwards what was left of it."""

import asyncio
import json

from runtime import errors, every, kernel, loop, on, phase, system
from runtime.brain.verbs import binding

from .calls import BAD, EDGES, GOOD, VERBS_OF_THE_LINK

PLACES = ["top level", "boot", "wake hook", "tick hook", "loop", "task", "spawn", "timer", "every", "outlived"]
found: dict[str, dict[str, str]] = {}
bad: list[list[str]] = []
edges: list[list[str]] = []
link: list[list[str]] = []
wakes: list = []
tasks: list = []
handles: dict = {}
words = [{"role": "user", "content": "hello"}]
circle: list = []
circle.append(circle)
deep: list = []
for _ in range(100_000):
    deep = [deep]
names = {
    "asyncio": asyncio,
    "kernel": kernel,
    "every": every,
    "phase": phase,
    "system": system,
    "handles": handles,
    "words": words,
    "nan": float("nan"),
    "inf": float("inf"),
    "r": circle,
    "deep": deep,
    "ref": "sha256:" + "0" * 64,
}


def known(function):
    """A function that an expression may call."""
    names[function.__name__] = function
    return function


@known
async def whole(stream):
    async for _ in stream:
        pass


@known
async def opened(handle):
    async with handle.open() as stream:
        await stream.push("one.")
        stream.reset()
        stream.close()


@known
async def pushed(handle, value):
    async with handle.open() as stream:
        await stream.push(value)


def word(result) -> str:
    """What came of a call that raised nothing: a result of run may be a failure."""
    failure = getattr((result[0] if isinstance(result, list) and result else result), "error", None)
    return f"result {failure.message.partition(':')[0]}" if failure else "works"


def attempt_now(expression: str) -> str:
    """Where nothing can be awaited: what a verb says before it waits."""
    try:
        result = eval(expression, names)
        if hasattr(result, "send"):
            try:
                result.send(None)
            finally:
                result.close()
        return word(result)
    except errors.AxonError as error:
        return error.code
    except KeyError as error:
        return f"no {error}"


async def attempt(expression: str) -> str:
    """The code of the error, or that it works."""
    try:
        result = eval(expression, names)
        return word(await result if hasattr(result, "__await__") else result)
    except errors.AxonError as error:
        return error.code
    except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
        return repr(error)


async def try_all(place: str) -> None:
    found[place] = {verb: await attempt(expression) for verb, expression in GOOD.items()}
    if "wake" in names:
        found[place] |= {"wake.spawn": await attempt("wake.spawn(asyncio.sleep(0))")}
        found[place] |= {"wake.stop": await attempt("wake.stop()")}


found["top level"] = {verb: attempt_now(expression) for verb, expression in GOOD.items() if "handles" not in expression}


@on("boot")
async def boot():
    for role in ("main", "eyes", "ears"):
        names[role] = handles[role] = kernel.engine(role)
    tasks.append(asyncio.create_task(outlive()))
    tasks.append(every(0.01, beat))
    asyncio.get_running_loop().call_later(0.01, lambda: tasks.append(asyncio.create_task(from_timer())))
    await try_all("boot")


async def first_wake_over():
    while not wakes or wakes[0].life.is_open:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.005)


async def outlive():
    await first_wake_over()
    await try_all("outlived")
    await kernel.wake()


async def from_timer():
    await first_wake_over()
    await try_all("timer")
    await kernel.wake()


async def beat():
    if "every" in found or not wakes or wakes[0].life.is_open:
        return
    await try_all("every")
    tasks[1].stop()
    await kernel.wake()


@on("wake")
async def at_wake(wake):
    if not wakes:
        wakes.append(wake)
        names["wake"] = wake
        await try_all("wake hook")


@on("tick")
async def at_tick(wake):
    if wake is wakes[0]:
        await try_all("tick hook")


@loop
async def think(wake):
    wake.stop()
    if wake is wakes[0]:
        await try_all("loop")
        await asyncio.create_task(try_all("task"))
        wake.spawn(try_all("spawn"))
    elif all(place in found for place in PLACES) and len(wakes) == 1:
        wakes.append(wake)
        names["wake"] = wake
        await try_bad()
        await try_link()
        for place, said in found.items():
            await tell(place, list(said.items()))
        await tell("bad", bad)
        await tell("edges", edges)
        await tell("link", link)
        await tell("all", [])


names["think"] = think


async def tell(about: str, rows: list):
    for start in range(0, len(rows) or 1, 200):
        content = json.dumps([about, rows[start : start + 200]])
        await kernel.output("cognet:output:text", {"channel": "told", "content": content})


async def state():
    """All that a verb could have changed."""
    catalogue = [(entry.name, entry.size) for entry in await kernel.knowledge.list()]
    return [kernel.store.session.get()[-1].seq, await kernel.store.get("checkpoint"), catalogue]


async def try_bad():
    before = await state()
    for expression, _ in BAD:
        said = await attempt(expression)
        left, before = before, await state()
        bad.append([expression, said[:200], "nothing" if left == before else f"{left} -> {before}"])
    for expression in EDGES:
        edges.append([expression, await attempt(expression)])


ODD = [None, -1, 2**63, float("nan"), b"x", "x" * 1000, [], {}, [[None]], {"a": {}}]


async def try_link():
    """What the runtime's own checks would never let through, straight to the kernel."""
    connection = binding.resolve("kernel")._connection
    before = await state()
    for verb, count in VERBS_OF_THE_LINK.items():
        wrong = [[odd] * number for number in {count, count + 1} for odd in ODD if number]
        for args in wrong:
            try:
                await asyncio.wait_for(connection.call(verb, args, wake_id="w", cursor=-5, hear=lambda _: None), 30)
                said = "works"
            except errors.AxonError as error:
                said = error.code
            left, before = before, await state()
            link.append([f"{verb}{args}"[:80], said, "nothing" if left == before else "something"])


@on("shutdown")
async def last():
    await try_all("shutdown")
    await tell("shutdown", list(found["shutdown"].items()))
    tasks.append(asyncio.create_task(afterwards()))


async def afterwards():
    """Goes on when everything has been said."""
    while attempt_now("kernel.clock()") == "works":  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    after = {verb: attempt_now(expression) for verb, expression in GOOD.items()}
    for code in sorted(set(after.values())):
        print(f"after {code}:", *(verb for verb, said in after.items() if said == code), flush=True)
