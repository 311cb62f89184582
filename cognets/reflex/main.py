"""Reflex: 30 times a second it takes in what came, steers, and leaves what is new to a slower thought beside it."""

from __future__ import annotations

import asyncio

from runtime import Wake, kernel, loop, on, phase

from .state import BIAS, Model, Novelty

THINKING_S = 1.5
CHECKPOINT_WAKES = 150
"""A checkpoint every 5 seconds at 30 Hz."""

model = Model()
pondered: set[str] = set()
"""Channels being thought about now: one thought a channel at a time."""


def sync() -> list[Novelty]:
    """Fold what the log has and the model hasn't: all of it on a cold boot, a few entries in a wake."""
    return model.fold(kernel.store.session.get(after=model.seq))


@on("boot")
async def remember() -> None:
    """Restore the checkpoint and catch up; what was new then is not new now."""
    global model
    model = Model.from_checkpoint(await kernel.store.get("checkpoint"))
    sync()


@loop
async def think(wake: Wake) -> None:
    """Sense, decide, act: one tick a wake."""
    async with phase("sense"):
        novelties = sync()
    async with phase("decide"):
        for novelty in novelties:
            if novelty.channel not in pondered:
                pondered.add(novelty.channel)
                wake.spawn(deliberate(novelty))
        if kernel.clock().wakes % CHECKPOINT_WAKES == 0:
            wake.spawn(kernel.store.set("checkpoint", model.to_checkpoint()))
    async with phase("act"):
        await kernel.output("cognet:output:field", {"channel": "steer", "reading": {"value": model.steer}})
    wake.stop()


async def deliberate(novelty: Novelty) -> None:
    """Think slowly while later wakes go on; the result is an output, and reaches them through the log."""
    try:
        async with phase("deliberate"):
            await asyncio.sleep(THINKING_S)  # where a model would be asked
            side = -1 if novelty.seq % 2 else 1
            bias = max(-0.5, min(0.5, 0.5 * model.bias + 0.2 * side))
        await kernel.output("cognet:output:field", {"channel": BIAS, "reading": {"value": bias}})
        await kernel.output(
            "cognet:output:text", {"channel": "thought", "content": f"{novelty.channel}: {novelty.what}"}
        )
    finally:
        pondered.discard(novelty.channel)
