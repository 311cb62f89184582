"""Folds the whole log once, from its first entry, and reports how long that took."""

import json
import time

from runtime import kernel, loop, on

report = {}


@on("boot")
async def fold() -> None:
    began, count, last = time.perf_counter(), 0, 0
    for entry in kernel.store.session.get():
        count += 1
        last = entry.time.seq
    report.update(seconds=time.perf_counter() - began, entries=count, last_seq=last)
    await kernel.wake()


@loop
async def tell(wake) -> None:
    await kernel.output("cognet:output:text", {"channel": "report", "content": json.dumps(report)})
    wake.stop()
