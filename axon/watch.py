"""A command's side of the bus socket: entries as they become durable, none left out, and telemetry beside them."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from capsule.errors import FrameInvalid
from capsule.frames import FrameSplitter, Hello, frame
from runtime.abi.entries import Entry, decode
from runtime.abi.errors import AgentNotRunning
from runtime.abi.link import Row
from runtime.abi.observe import BUS_PROTOCOL, Durable, FromBus, Narrated, RunFile, Subscribe
from runtime.abi.telemetry import TelemetryEvent
from runtime.log.reader import LogReader

LOOK_S = 0.5
"""How long the bus may be silent before the log is looked at: a bus may skip what an observer is too slow for."""
_decoder = msgspec.msgpack.Decoder(FromBus)


class Watch:
    """One connection to the bus of a running kernel; use it as a context."""

    def __init__(self, run: RunFile, session: Path) -> None:
        self._session = session
        self._splitter = FrameSplitter()
        self._greeted = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(run.bus)
            hello = msgspec.msgpack.encode(Hello(protocol=BUS_PROTOCOL, pid=os.getpid()))
            wants = msgspec.msgpack.encode(Subscribe(entries=True, telemetry=True))
            self._socket.sendall(frame(hello) + frame(wants))
        except OSError as error:
            self._socket.close()
            raise AgentNotRunning(f"the kernel's bus doesn't answer: {error}") from error

    def since(self, seq: int, *, deadline: float) -> Iterator[Entry | TelemetryEvent]:
        """Every entry after ``seq`` in its order, and telemetry as it comes, until the monotonic ``deadline``.

        Raises ``AgentNotRunning`` when the kernel ends.
        """
        while (left_s := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([self._socket], [], [], min(left_s, LOOK_S))
            for message in self._read() if ready else [Durable([])]:
                if isinstance(message, Narrated):
                    yield from message.events
                elif isinstance(message, Durable):
                    for row in self._whole(message.rows, seq):
                        seq = row.seq
                        yield decode(row.body, row.seq)

    def _whole(self, rows: list[Row], seq: int) -> Iterable[Row]:
        """The rows after ``seq``; from the log itself where the bus left some out, or is silent."""
        newer = [row for row in rows if row.seq > seq]
        if rows and (not newer or newer[0].seq == seq + 1):
            return newer
        return LogReader(self._session).rows(after=seq)

    def _read(self) -> list[FromBus]:
        piece = self._socket.recv(1 << 20)
        if not piece:
            raise AgentNotRunning("the kernel ended")
        frames = list(self._splitter.feed(piece))
        if frames and not self._greeted:
            hello = msgspec.msgpack.decode(frames.pop(0), type=Hello)
            if hello.protocol != BUS_PROTOCOL:
                raise FrameInvalid(f"the kernel's bus speaks {hello.protocol!r}, this command {BUS_PROTOCOL!r}")
            self._greeted = True
        return [_decoder.decode(payload) for payload in frames]

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
