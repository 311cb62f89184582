"""The guest's end of the socket: whole frames out from any thread, messages in on a thread of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from threading import Lock, get_ident

import msgspec

from capsule.frames import Hello, frame, receive_frame
from capsule.protocol import CAPSULE_PROTOCOL, FromGuest, ToGuest


class Wire:
    """Blocks in plain calls; a lost kernel ends the process."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lock = Lock()
        self._sender = 0
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(ToGuest)

    def greet(self) -> None:
        """Exchange hellos; another protocol ends the process."""
        self._send(self._encoder.encode(Hello(protocol=CAPSULE_PROTOCOL, pid=os.getpid())))
        payload = receive_frame(self._socket)
        if payload is None or msgspec.msgpack.decode(payload, type=Hello).protocol != CAPSULE_PROTOCOL:
            os._exit(1)

    def send(self, message: FromGuest) -> None:
        """One message, whole."""
        self._send(self._encoder.encode(message))

    @property
    def is_sending_here(self) -> bool:
        """Whether this thread is in the middle of a message, which must not be torn."""
        return self._sender == get_ident()

    def _send(self, payload: bytes) -> None:
        data = frame(payload)
        try:
            with self._lock:
                self._sender = get_ident()
                self._socket.sendall(data)
                self._sender = 0
        except OSError:
            os._exit(1)

    def listen(self, take: Callable[[ToGuest], None]) -> None:
        """Give each message to ``take`` for as long as there is a kernel."""
        try:
            while (payload := receive_frame(self._socket)) is not None:
                take(self._decoder.decode(payload))
        finally:
            os._exit(1)
