"""Holds the log as its model, and says at every tenth wake how long and which it is: for comparison with the log."""

import hashlib
import json

from runtime import every, kernel, loop, on

folded = []
digest = hashlib.sha256()


def sync() -> None:
    for entry in kernel.store.session.get(after=folded[-1].time.seq if folded else 0):
        folded.append(entry)
        digest.update(f"{entry.time.seq}:{entry.id};".encode())


@on("boot")
async def begin() -> None:
    sync()
    every(1 / 30, kernel.wake)


@loop
async def think(wake) -> None:
    sync()
    assert [entry.id for entry in folded[-50:]] == [entry.id for entry in list(kernel.store.session.get())[-50:]]
    if kernel.clock().wakes % 10 == 0:
        said = {"seq": folded[-1].time.seq if folded else 0, "count": len(folded), "digest": digest.hexdigest()}
        await kernel.output("cognet:output:text", {"channel": "mirror", "content": json.dumps(said)})
        await kernel.store.set("notes-{session}", {"seq": said["seq"]})
    wake.stop()
