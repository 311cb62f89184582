"""Reflex: 30 times a second it takes in what came, steers, and leaves what is new to a slower thought beside it."""

from __future__ import annotations

import asyncio

from runtime import Wake, kernel, loop, on, phase

from .state import BIAS, Model, Novelty

THINKING_S = 1.5
CHECKPOINT = "checkpoint-{session}"
"""The model stands on one session's log, so each session has its own."""
CHECKPOINT_ENTRIES = 500
"""How many entries a restart may have to fold again: a few seconds of a rover, a few milliseconds of folding."""

model = Model()
saved_seq = 0
pondered: set[str] = set()
"""Channels being thought about now: one thought a channel at a time."""


def sync() -> list[Novelty]:
    """Fold what the log has and the model hasn't: all of it on a cold boot, a few entries in a wake."""
    return model.fold(kernel.store.session.get(after=model.seq))


@on("boot")
async def remember() -> None:
    """Restore the checkpoint and catch up; what was new then is not new now."""
    global model, saved_seq
    model = Model.from_checkpoint(await kernel.store.get(CHECKPOINT))
    saved_seq = model.seq
    sync()


@on("shutdown")
async def save() -> None:
    """Keep what the next start would otherwise fold again; losing it costs that fold, nothing else."""
    global saved_seq
    saved_seq = model.seq
    await kernel.store.set(CHECKPOINT, model.to_checkpoint())


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
        if model.seq - saved_seq >= CHECKPOINT_ENTRIES:
            wake.spawn(save())
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
