"""The bus: observers read durable entries and telemetry; a slow one gets a gap, never back-pressure."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from capsule.errors import FrameInvalid
from capsule.frames import Hello, frame
from capsule.streams import read_frame
from runtime.abi.link import Row
from runtime.abi.observe import BUS_PROTOCOL, Durable, FromBus, Narrated, Skipped, Subscribe
from runtime.abi.telemetry import TelemetryEvent

MAX_WAITING_BYTES = 2 * 1024 * 1024
HELLO_S = 5.0
_encoder = msgspec.msgpack.Encoder()


class Observer:
    """One connection and what it asked for."""

    def __init__(self, writer: asyncio.StreamWriter, wants: Subscribe) -> None:
        self.writer = writer
        self.wants = wants
        self.skipped = 0

    def send(self, framed: bytes) -> None:
        """Hand it over, unless too much waits already: then count what is left out and say so later."""
        transport = self.writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > MAX_WAITING_BYTES:
            self.skipped += 1
            return
        if self.skipped:
            self.writer.write(_framed(Skipped(self.skipped)))
            self.skipped = 0
        self.writer.write(framed)


class Bus:
    """The server of the bus socket."""

    def __init__(self) -> None:
        self._observers: set[Observer] = set()
        self._events: list[TelemetryEvent] = []
        self._server: asyncio.Server | None = None

    async def listen(self, path: Path) -> None:
        """Open the socket, for this user alone."""
        self._server = await asyncio.start_unix_server(self._serve, path=str(path))
        os.chmod(path, 0o600)

    def durable(self, rows: list[Row]) -> None:
        """Entries reached the disk."""
        self._send(Durable(rows), entries=True)

    def narrate(self, event: TelemetryEvent) -> None:
        """An event happened; what comes in one turn of the loop goes out as one message."""
        if not self._observers:
            return
        if not self._events:
            asyncio.get_running_loop().call_soon(self._flush)
        self._events.append(event)

    async def close(self) -> None:
        """Let every observer go."""
        for observer in list(self._observers):
            observer.writer.close()
        if self._server:
            self._server.close()

    def _flush(self) -> None:
        events, self._events = self._events, []
        self._send(Narrated(events), entries=False)

    def _send(self, message: FromBus, *, entries: bool) -> None:
        chosen = [o for o in self._observers if (o.wants.entries if entries else o.wants.telemetry)]
        if chosen:
            framed = _framed(message)
            for observer in chosen:
                observer.send(framed)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wants = await asyncio.wait_for(_greet(reader, writer), HELLO_S)
        except (FrameInvalid, msgspec.MsgspecError, TimeoutError, OSError):
            writer.close()
            return
        observer = Observer(writer, wants)
        self._observers.add(observer)
        try:
            while await reader.read(4096):
                continue  # an observer has nothing more to say; its end is what this waits for
        except OSError:
            pass  # it went away, which is the end this waited for
        finally:
            self._observers.discard(observer)
            writer.close()


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Subscribe:
    await expect_hello(reader, writer, BUS_PROTOCOL)
    return msgspec.msgpack.decode(await read_frame(reader) or b"", type=Subscribe)


async def expect_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: str) -> None:
    """Exchange hellos; ``FrameInvalid`` for another protocol."""
    writer.write(_framed(Hello(protocol=protocol, pid=os.getpid())))
    hello = msgspec.msgpack.decode(await read_frame(reader) or b"", type=Hello)
    if hello.protocol != protocol:
        raise FrameInvalid(f"the peer speaks {hello.protocol!r}, not {protocol!r}")


def _framed(message: msgspec.Struct) -> bytes:
    return frame(_encoder.encode(message))
