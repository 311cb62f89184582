"""Wakes 30 times a second, and asks for more memory than its sandbox gives when somebody says so."""

from runtime import every, kernel, loop, on

GIB = 2**30


@on("boot")
async def begin() -> None:
    every(1 / 30, kernel.wake)


@loop
async def think(wake) -> None:
    if any(entry.type == "cognet:stimulus:text" and entry.data.content == "eat" for entry in wake.stimuli):
        bytes(8 * GIB)
    wake.stop()
