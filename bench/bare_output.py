"""The floor of an output's path: a loop, a writer's thread and a caller in another process, with nothing else in them.

Run as ``python -m bench.bare_output DATABASE``; prints the median time of a call in milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import sys
import threading
import time

import uvloop

from bench.figure import median
from bench.outputs import open_reference

COUNT = 500
BODY = b"x" * 400
LENGTH = 8


async def caller(sock: socket.socket) -> None:
    """Send, wait for the answer, five hundred times."""
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    took = []
    for _ in range(COUNT):
        began = time.perf_counter()
        writer.write(BODY)
        await reader.readexactly(LENGTH)
        took.append(1000 * (time.perf_counter() - began))
    print(median(took), flush=True)
    writer.close()


async def keeper(sock: socket.socket, path: str) -> None:
    """Hand each message to a thread that commits it, and answer when it has."""
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    loop, waiting = asyncio.get_running_loop(), queue.SimpleQueue[bytes | None]()
    thread = threading.Thread(target=commit_all, args=(path, loop, waiting, writer))
    thread.start()
    while body := await reader.read(4096):
        waiting.put(body)
    waiting.put(None)
    await asyncio.to_thread(thread.join)


def commit_all(
    path: str, loop: asyncio.AbstractEventLoop, waiting: queue.SimpleQueue[bytes | None], writer: asyncio.StreamWriter
) -> None:
    connection = open_reference(path)
    while body := waiting.get():
        with connection:
            connection.execute("INSERT INTO entry(type, body, chain) VALUES(?, ?, ?)", ("t", body, b"c" * 32))
        loop.call_soon_threadsafe(writer.write, b"answered")
    connection.close()


def main(path: str) -> None:
    """The caller is a child; both run uvloop."""
    mine, theirs = socket.socketpair()
    if os.fork() == 0:
        mine.close()
        uvloop.run(caller(theirs))
        os._exit(0)
    theirs.close()
    uvloop.run(keeper(mine, path))
    os.wait()


if __name__ == "__main__":
    main(sys.argv[1])
