"""One ``output()`` of the brain alone, from the call to durable, beside a SQLite commit and a socket round trip."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import apsw
import uvloop

from bench.agents import ROOT, agent, outputs, run
from bench.figure import Figure, at_most, median

COUNT = 500
ROUNDS = 5
ALLOWANCE_MS = 0.3
BODY = b"x" * 400


def figures() -> Iterator[Figure]:
    """Several rounds, each beside its own references, since a disk's sync varies; the median margin counts."""
    rounds = [measure() for _ in range(ROUNDS)]
    margins = [value - floor for value, floor, _ in rounds]
    value, floor, bare = rounds[margins.index(median(margins))]
    yield at_most("lone_output_p50", value, floor + ALLOWANCE_MS, "ms", "SQLite commit + socket round trip", floor)
    yield at_most("lone_output_p50_beside_bare_path", value, None, "ms", "loop, writer's thread and caller alone", bare)


def measure() -> tuple[float, float, float]:
    """The p50 of an output; of a commit before and after it plus a round trip; of the bare path. Milliseconds."""
    with agent("lone_output") as folder:
        before = commit_ms(str(folder / "before.db"))
        run(folder, 5, "--no-status")
        took = outputs(folder, "report")[-1]
        bare = bare_ms(str(folder / "bare.db"))
        after = commit_ms(str(folder / "after.db"))
    return median(took), (before + after) / 2 + uvloop.run(round_trip_ms()), bare


def open_reference(path: str) -> apsw.Connection:
    """A database with the log's settings and its table."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(f"file:{path}?psow=0", flags=flags)
    for pragma in ("page_size=4096", "journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0", "mmap_size=0"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("CREATE TABLE entry(seq INTEGER PRIMARY KEY, type TEXT, body BLOB, chain BLOB)")
    return db


def commit_ms(path: str) -> float:
    """The median of one-row commits with the log's settings on the same disk."""
    db, took = open_reference(path), []
    for _ in range(COUNT):
        began = time.perf_counter()
        with db:
            db.execute("INSERT INTO entry(type, body, chain) VALUES(?, ?, ?)", ("t", BODY, b"c" * 32))
        took.append(1000 * (time.perf_counter() - began))
    db.close()
    return median(took)


def bare_ms(path: str) -> float:
    """The same path with nothing in it but its wake-ups."""
    command = [sys.executable, "-m", "bench.bare_output", path]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


async def round_trip_ms() -> float:
    """A message there and back between this loop and another process's, from idle."""
    mine, theirs = socket.socketpair()
    process = await asyncio.create_subprocess_exec(
        "python3", "-c", ECHO, str(theirs.fileno()), pass_fds=[theirs.fileno()]
    )
    theirs.close()
    reader, writer = await asyncio.open_unix_connection(sock=mine)
    took = []
    for _ in range(COUNT):
        await asyncio.sleep(0.002)
        began = time.perf_counter()
        writer.write(BODY)
        await reader.readexactly(len(BODY))
        took.append(1000 * (time.perf_counter() - began))
    writer.close()
    await process.wait()
    return median(took)


ECHO = """
import socket, sys
peer = socket.socket(fileno=int(sys.argv[1]))
while piece := peer.recv(4096):
    peer.sendall(piece)
"""
