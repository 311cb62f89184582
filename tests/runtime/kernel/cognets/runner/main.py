"""Executes the blocks it is told and says what came of them; for words that it had begun with, how that ended."""

import asyncio
import json

import msgspec

from runtime import kernel, loop, on


@loop
async def think(wake) -> None:
    for stimulus in wake.stimuli:
        told = json.loads(stimulus.data.content)
        if begun(stimulus.seq):
            await say("found", [entry.data for entry in entries("result")])
            continue
        if told == "forsake":
            await forsake()
        else:
            await say("result", await kernel.run(told))
    wake.stop()


def entries(kind: str) -> list:
    """The actions or results of the log."""
    return [entry for entry in kernel.store.session.get() if entry.type == f"cognet:action:{kind}"]


def begun(seq: int) -> bool:
    """Whether a wake that had seen this has acted."""
    return any(entry.context.wake_id and entry.context.cursor >= seq for entry in entries("python"))


@on("shutdown")
async def last() -> None:
    result = await kernel.run("1")
    await say("last", result)


async def forsake() -> None:
    """A block that nobody waits for any more."""
    task = asyncio.ensure_future(kernel.run("while True: pass"))
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.wait([task])
    await say("forsaken", task.cancelled())


async def say(channel: str, value: object) -> None:
    content = json.dumps(msgspec.to_builtins(value))
    await kernel.output("cognet:output:text", {"channel": channel, "content": content})
