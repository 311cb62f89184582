"""Asks every kind of engine when it is spoken to, and says what came of it."""

from runtime import errors, kernel, loop, on


async def tell(words):
    await kernel.output("cognet:output:text", {"channel": "told", "content": words})


@loop
async def think(wake):
    main, eyes, ears = (kernel.engine(role) for role in ("main", "eyes", "ears"))
    answer = await main.request([{"role": "user", "content": "hello"}])
    await tell(f"main {answer.text.splitlines()[0]} {answer.prompt_tokens} {await main.count([answer_of(answer)])}")
    await tell(f"eyes {await eyes({'seen': 1})}")
    async with ears.open() as stream:
        await stream.push("one. tw")
        await stream.push("o!")
        stream.close()
        await tell(f"ears {[result.strip() async for result in stream]}")
    try:
        kernel.engine("nose")
    except errors.EngineRoleUnbound as error:
        await tell(f"nose {kernel.engine.has('nose')} {error.code}")
    await tell(f"facts {main.context} {main.slots} {main.modalities.input} {kernel.engine.has('main')}")
    wake.stop()


def answer_of(answer):
    return {"role": "assistant", "content": answer.text}


@on("shutdown")
async def late():
    try:
        await kernel.engine("main").request([{"role": "user", "content": "hello"}])
    except errors.KernelStopping:
        await tell("late refused")
