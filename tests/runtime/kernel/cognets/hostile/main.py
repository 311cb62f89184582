"""Does harm when somebody says which: everything here is the cognet's own code, in the sandbox."""

import asyncio
import os
import struct
import sys
import threading
import time

import msgspec

from runtime import every, kernel, loop, on

LINK, PAGES = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (-1, -1)


def send(*frames):
    """Frames of our own making on the kernel's link, past the runtime."""
    for value in frames:
        payload = value if isinstance(value, bytes) else msgspec.msgpack.encode(value)
        os.write(LINK, struct.pack(">I", len(payload)) + payload)


async def store_flood():
    results = await asyncio.gather(
        *(kernel.store.set("notes-{session}", {"a" * 90_000: number}) for number in range(500)), return_exceptions=True
    )
    await kernel.output("cognet:output:text", {"channel": "told", "content": str(sum(r is not None for r in results))})


def message_flood():
    for _ in range(200_000):
        send(["Heartbeat", 1])


def never_read():
    for _ in range(2000):
        send(["Call", 1, "store.get", ["notes-{session}"], None, None])
    while True:
        time.sleep(1)


HARMS = {
    "garbage": lambda: os.write(LINK, b"\xff" * 64),
    "garbage for pages": lambda: os.write(PAGES, b"\xff" * 64),
    "deep": lambda: send(b"\x91" * 100_000),
    "settle": lambda: send(["Call", 1, "settle", [-5], None, None]),
    "settle far": lambda: send(["Call", 1, "settle", [10**15], None, None]),
    "ordinal": lambda: send(["Admitted", "w", 2**31, 1, 1]),
    "missed": lambda: send(["Missed", 2**63, "clock"]),
    "blank": lambda: send(["Ended", "w", 1, "failed", 1, 1, 1, " "]),
    "load failed": lambda: send(["LoadFailed", {"code": "X", "message": "m", "facts": {"hint": 1, "message": 2}}]),
    "forged event": lambda: send(["Told", [{"type": "kernel:boot", "mono_us": 1, "data": {}}]]),
    "close": lambda: (os.close(LINK), time.sleep(600)),
    "exit": lambda: os._exit(3),
    "memory": lambda: [bytearray(10**8) for _ in range(200)],
    "print": lambda: [print("x" * 100) for _ in range(300_000)],
    "threads": lambda: [threading.Thread(target=time.sleep, args=(600,)).start() for _ in range(10_000)],
    "flood": message_flood,
    "never read": never_read,
    "store": store_flood,
}


@on("boot")
async def begin():
    every(1 / 20, kernel.wake)


@loop
async def think(wake):
    for stimulus in wake.stimuli:
        if stimulus.type == "cognet:stimulus:text" and stimulus.data.content in HARMS:
            done = HARMS[stimulus.data.content]()
            if asyncio.iscoroutine(done):
                wake.spawn(done)
    await kernel.output("cognet:output:field", {"channel": "pulse", "reading": {"value": 1}})
    wake.stop()
