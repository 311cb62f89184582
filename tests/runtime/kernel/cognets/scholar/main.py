"""Does what the words of a stimulus say, as JSON: a verb with its arguments; and says what came of it."""

import json
import os

import msgspec

from runtime import errors, kernel, loop, on

at_boot = []


def look(path):
    """Open an entry by its path, then try to change it and what lies around it."""
    refused = []
    for name in (path, os.path.join(os.path.dirname(path), "new")):
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT))
        except OSError as error:
            refused.append(error.strerror)
    for act in (os.unlink, os.rmdir):
        try:
            act(path if act is os.unlink else os.path.dirname(path))
        except OSError as error:
            refused.append(error.strerror)
    with open(path) as file:
        return [file.read(), refused]


def seen(type_):
    return [msgspec.to_builtins(e.data) for e in kernel.store.session.get() if e.type == type_]


async def flood(count):
    """Not awaited one by one: the last of each name must stay."""
    import asyncio

    await asyncio.gather(*(kernel.knowledge.write(f"flood/{n % 7}", str(n)) for n in range(count)))


async def forge(frame):
    """A message of our own making on the link, past the runtime."""
    import struct
    import sys

    payload = msgspec.msgpack.encode(frame)
    os.write(int(sys.argv[1]), struct.pack(">I", len(payload)) + payload)


VERBS = {
    "list": kernel.knowledge.list,
    "read": kernel.knowledge.read,
    "write": kernel.knowledge.write,
    "remove": kernel.knowledge.remove,
    "base": kernel.base,
    "fault": kernel.fault,
    "emit": kernel.emit,
    "get": kernel.store.get,
    "set": kernel.store.set,
    "look": look,
    "seen": seen,
    "flood": flood,
    "forge": forge,
    "boot": lambda: at_boot,
}


@on("boot")
async def begin():
    at_boot.append(await kernel.base())
    at_boot.append([entry.name for entry in await kernel.knowledge.list()])


async def done(asked):
    try:
        result = VERBS[asked["verb"]](*asked.get("args", []), **asked.get("kw", {}))
        if hasattr(result, "__await__"):
            result = await result
    except errors.AxonError as error:
        return {"error": error.code, "message": error.message}
    return {"value": msgspec.to_builtins(result)}


@loop
async def think(wake):
    for stimulus in wake.stimuli:
        answer = await done(json.loads(stimulus.data.content))
        await kernel.output("cognet:output:text", {"channel": "told", "content": json.dumps(answer)})
    wake.stop()
