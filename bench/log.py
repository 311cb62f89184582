"""Figures of the log: each against its floor, in the same run, on the same machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import uvloop

from bench.agents import scratch
from bench.figure import Figure, at_least, at_most
from capsule.frames import Hello, frame, receive_frame
from runtime.abi.entries import Entry, decode_page
from runtime.abi.ids import uuid7
from runtime.abi.link import PAGE_PROTOCOL, Page, PageRequest
from runtime.durable.database import evict, open_reader, open_writer
from runtime.log import chain, schema
from runtime.log.admission import validated
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing

FIELD = "cognet:stimulus:field"
READING = {"source": {"channel": "host.cpu"}, "reading": {"value": 12.5, "unit": "%"}}
CAPTURED = {"captured": {"epoch": "01a22e91-0e30-7d9c-aaae-415333de652d", "ms": 1_764_541_151_000, "seq": 12345}}
DATA = READING | CAPTURED
SHM = Path("/dev/shm")
WINDOW = 4096


def open_log(folder: Path, **settings: Any) -> Log:
    return Log.open(
        folder,
        agent_id="rover",
        session_id="01a22e91-0e30-7d9c-aaae-415333de652d",
        boot_id=uuid7(),
        settings=LogSettings(volatile_data=True, **settings),
        media=MemoryRing(max_bytes=1_000_000),
    )


async def with_log(base: Path, measure: Callable[[Log], Awaitable[Any]], **settings: Any) -> Any:
    """Open a log in a folder of its own, measure, close, remove."""
    folder = Path(tempfile.mkdtemp(dir=base))
    try:
        log = open_log(folder / "session", **settings)
        log.start(asyncio.get_running_loop())
        result = await measure(log)
        await log.close(clean=True)
        return result
    finally:
        shutil.rmtree(folder)


async def in_flight(log: Log, *, senders: int, seconds: float) -> float:
    """Entries a second with so many senders, each awaiting its own entry before the next."""
    count, end = 0, time.monotonic() + seconds

    async def send() -> None:
        nonlocal count
        while time.monotonic() < end:
            await log.durable(log.admit(FIELD, DATA).seq)
            count += 1

    began = time.monotonic()
    await asyncio.gather(*[send() for _ in range(senders)])
    return count / (time.monotonic() - began)


async def stream(log: Log, *, entries: int) -> float:
    """Entries a second from admission to the disk, with at most ``WINDOW`` of them not yet durable."""
    began = time.monotonic()
    for number in range(0, entries, 256):
        for _ in range(256):
            log.admit(FIELD, DATA)
        if number >= WINDOW:
            await log.durable(log.last_seq - WINDOW + 256)
        await asyncio.sleep(0)
    await log.durable(log.last_seq)
    return entries / (time.monotonic() - began)


async def lone(log: Log, raw: apsw.Connection) -> tuple[float, float]:
    """Milliseconds of a lone commit through the log and of a raw one, taken in turn: p50 of each."""
    ours, floor = [], []
    body = await lone_body(log)
    for number in range(400):
        began = time.perf_counter()
        await log.durable(log.admit(FIELD, DATA).seq)
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        raw.execute(
            "INSERT INTO entry(seq, type, body, chain) VALUES (?, ?, ?, ?)", (number + 1, FIELD, body, bytes(32))
        )
        floor.append(time.perf_counter() - began)
    return statistics.median(ours) * 1000, statistics.median(floor) * 1000


async def lone_body(log: Log) -> bytes:
    entry = log.admit(FIELD, DATA)
    await log.durable(entry.seq)
    return entry.body


async def rates(base: Path) -> list[Figure]:
    one = await with_log(base, lambda log: in_flight(log, senders=1, seconds=2), sync_delay_ms=4)
    many = await with_log(base, lambda log: in_flight(log, senders=64, seconds=2), sync_delay_ms=4)
    delayed = "one entry a commit, sync_delay_ms = 4 on both; goal 40 x"
    figures = [at_least("log: 64 in flight, slow sync", many, 40 * one, "entries/s", delayed, one)]
    shm = SHM if os.access(SHM, os.W_OK) else base
    what = "validation and chain included, sync free (tmpfs)"
    free = max([await with_log(shm, lambda log: stream(log, entries=150_000)) for _ in range(3)])
    figures.append(at_least("log: entries, free sync", free, 60_000, "entries/s", what, None))
    flight = await with_log(shm, lambda log: in_flight(log, senders=64, seconds=2))
    figures.append(at_least("log: 64 in flight, free sync", flight, None, "entries/s", what, None))
    disk = await with_log(base, lambda log: stream(log, entries=150_000))
    figures.append(at_least("log: entries, this disk", disk, None, "entries/s", "validation and chain included", None))
    many = await with_log(base, lambda log: in_flight(log, senders=64, seconds=2))
    one = await with_log(base, lambda log: in_flight(log, senders=1, seconds=2))
    figures.append(at_least("log: 64 in flight, this disk", many, None, "entries/s", "one entry a commit", one))
    return figures


async def lone_commit(base: Path) -> Figure:
    folder = Path(tempfile.mkdtemp(dir=base))
    raw = open_writer(folder / "raw.db")
    schema.create(raw, agent_id="rover", session_id="session")
    ours, floor = await with_log(base, lambda log: lone(log, raw))
    raw.close()
    shutil.rmtree(folder)
    reference = "one SQLite commit, same settings, p50; goal + 0.2 ms"
    return at_most("log: lone commit, p50", ours, floor + 0.2, "ms", reference, floor)


def chain_and_validation() -> Figure:
    """CPU time of validating a plain payload and of both hashes, as admission does them; the best of several."""
    body, previous, best = b"x" * 400, chain.GENESIS, []
    for _ in range(7):
        began = time.thread_time()
        for seq in range(20_000):
            validated(FIELD, READING)
            previous = chain.extend(previous, seq=seq, body=body)
        best.append((time.thread_time() - began) / 20_000 * 1e6)
    return at_most("log: validation and chain", min(best), 3.0, "us/entry", "CPU of one thread", None)


async def million(base: Path, entries: int) -> list[Figure]:
    """Cold read through pages, and opening, of a log of that many entries."""
    folder = Path(tempfile.mkdtemp(dir=base)) / "session"
    log = open_log(folder)
    log.start(asyncio.get_running_loop())
    await stream(log, entries=entries)
    await log.close(clean=True)
    found = [await opening(folder), await cold_read(folder, entries)]
    shutil.rmtree(folder.parent)
    return found


async def opening(folder: Path) -> Figure:
    """After an unclean end with 2,000 entries in the write-ahead log, and after a clean one."""
    clean, unclean = [], []
    for _ in range(5):
        log = open_log(folder)
        clean.append(log.recovery.replay_ms)
        log.start(asyncio.get_running_loop())
        await stream(log, entries=2048)
        await log.close(clean=False)
        log = open_log(folder)
        unclean.append(log.recovery.replay_ms)
        await log.close(clean=True)
    value, floor = statistics.median(unclean), statistics.median(clean)
    return at_most("log: opening after unclean end", value, 500.0, "ms", "after a clean end, 1,000,000 entries", floor)


async def cold_read(folder: Path, entries: int) -> Figure:
    """Through the page socket into another process, one page read ahead; each page checked against the chain."""
    log = open_log(folder)
    log.start(asyncio.get_running_loop())
    ours, theirs = socket.socketpair()
    log.serve_pages(ours)
    argv = [sys.executable, "-m", "bench.log", "read", str(theirs.fileno()), str(entries)]
    child = await asyncio.create_subprocess_exec(*argv, pass_fds=[theirs.fileno()], stdout=asyncio.subprocess.PIPE)
    theirs.close()
    output, _ = await child.communicate()
    await log.close(clean=True)
    evict(folder / "log.db")
    value, floor = float(output), await asyncio.to_thread(raw_read, folder / "log.db", entries)
    return at_most("log: cold read by pages", value, 2 * floor, "s", "SELECT and msgspec decode, one process", floor)


def read_by_pages(sock: socket.socket, entries: int) -> float:
    """What the brain does: ask for the next page, then decode the one that came."""
    began = time.perf_counter()
    sock.sendall(frame(msgspec.msgpack.encode(Hello(protocol=PAGE_PROTOCOL))))
    receive_frame(sock)
    ask = 0
    sock.sendall(frame(msgspec.msgpack.encode(PageRequest(ask, entries))))
    while ask < entries:
        page = msgspec.msgpack.decode(receive_frame(sock) or b"", type=Page)
        ask = page.first_seq + page.count - 1
        sock.sendall(frame(msgspec.msgpack.encode(PageRequest(ask, entries))))
        decode_page(page.bodies, page.first_seq)
    return time.perf_counter() - began


def raw_read(path: Path, entries: int) -> float:
    decoder = msgspec.json.Decoder(Entry)
    connection = open_reader(path)
    began = time.perf_counter()
    for _, body in connection.execute("SELECT seq, body FROM entry WHERE seq <= ? ORDER BY seq", (entries,)):
        decoder.decode(body)
    took = time.perf_counter() - began
    connection.close()
    return took


async def measure(base: Path, entries: int) -> list[Figure]:
    return [*await rates(base), await lone_commit(base), chain_and_validation(), *await million(base, entries)]


def figures(entries: int = 1_000_000) -> list[Figure]:
    """All figures, on this disk."""
    return uvloop.run(measure(scratch(), entries))


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        print(read_by_pages(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3])))
