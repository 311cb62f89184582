"""Works at 30 Hz until somebody says "spin"; then it never returns to its event loop."""

from runtime import every, kernel, loop, on


@on("boot")
async def begin() -> None:
    every(1 / 30, kernel.wake)


@loop
async def think(wake) -> None:
    for stimulus in wake.stimuli:
        if stimulus.type == "cognet:stimulus:text" and stimulus.data.content == "spin":
            while True:
                pass
    await kernel.output("cognet:output:field", {"channel": "pulse", "reading": {"value": 1}})
    wake.stop()
