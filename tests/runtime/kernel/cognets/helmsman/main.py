"""Steers at 30 Hz by the last number that somebody said; after "quiet" it says nothing, after "spin" it hangs."""

import json

from runtime import every, kernel, loop, on

course = {"value": 0.5}


@on("boot")
async def begin() -> None:
    every(1 / 30, kernel.wake)


@loop
async def think(wake) -> None:
    for stimulus in wake.stimuli:
        if stimulus.type != "cognet:stimulus:text":
            continue
        words = stimulus.data.content
        while words == "spin":
            pass
        if words == "words":
            await kernel.output("cognet:output:text", {"channel": "steer", "content": "left"})
        elif words == "burst":
            for number in range(200):
                await kernel.output("cognet:output:field", {"channel": "steer", "reading": {"value": number / 1000}})
        else:
            course["value"] = None if words == "quiet" else json.loads(words)
    if course["value"] is not None:
        await kernel.output("cognet:output:field", {"channel": "steer", "reading": {"value": course["value"]}})
    wake.stop()
