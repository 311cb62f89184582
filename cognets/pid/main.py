"""Pid: each wake folds what was measured and told since the last, and says what the controller wants."""

from __future__ import annotations

from runtime import Wake, kernel, loop, on, phase

from .controller import Controller

CONTROL = "control"
CHECKPOINT = "checkpoint-{session}"
CHECKPOINT_ENTRIES = 2000
STALE_WAKES = 20
"""After so many wakes without a measurement it says nothing: who acts on its word takes the safe action then."""

controller = Controller()
saved_seq = 0
wakes_blind = STALE_WAKES


@on("boot")
async def remember() -> None:
    """Restore the checkpoint and fold what came after it; the same as folding everything."""
    global controller, saved_seq
    controller = Controller.from_checkpoint(await kernel.store.get(CHECKPOINT))
    saved_seq = controller.seq
    sync()


@on("shutdown")
async def save() -> None:
    """Keep what the next start would otherwise fold again."""
    global saved_seq
    saved_seq = controller.seq
    await kernel.store.set(CHECKPOINT, controller.to_checkpoint())


def sync() -> int:
    """Fold what the log has and the controller hasn't; returns how many measurements were among it."""
    return controller.fold(kernel.store.session.get(after=controller.seq))


@loop
async def think(wake: Wake) -> None:
    """Measure, then say what to do."""
    global wakes_blind
    async with phase("measure"):
        wakes_blind = 0 if sync() else wakes_blind + 1
    async with phase("act"):
        if wakes_blind < STALE_WAKES and controller.setpoint is not None:
            await kernel.output("cognet:output:field", {"channel": CONTROL, "reading": {"value": controller.control}})
    if controller.seq - saved_seq >= CHECKPOINT_ENTRIES:
        wake.spawn(save())
    wake.stop()
