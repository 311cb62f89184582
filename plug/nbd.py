"""A network block device on a Unix socket: how a virtual machine reaches a ``Disk`` of ours.

The newstyle handshake with one export, simple replies, and the commands that a guest's disk needs: read, write (also
with FUA), flush and disconnect. Source: the protocol's description in doc/proto.md of the NBD project.
"""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

from plug.disk import Disk

MAGIC, OPTION_MAGIC, REPLY_MAGIC = b"NBDMAGIC", b"IHAVEOPT", 0x3E889045565A9
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
OPT_EXPORT_NAME, OPT_ABORT, OPT_INFO, OPT_GO = 1, 2, 6, 7
REP_ACK, REP_INFO, REP_UNSUPPORTED = 1, 3, 0x80000001
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
FLAGS = HAS_FLAGS | SEND_FLUSH | SEND_FUA
REQUEST_MAGIC, SIMPLE_MAGIC = 0x25609513, 0x67446698
READ, WRITE, LEAVE, FLUSH = 0, 1, 2, 3
FUA = 1
UNKNOWN = 22  # EINVAL


class Server:
    """Serves one disk to one machine, in a thread; ``close`` returns when the last request has been taken."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._thread = threading.Thread(target=self._serve, name="nbd", daemon=True)
        self._thread.start()
        self.requests = 0

    def close(self) -> None:
        """The machine is gone; nothing reaches the disk after this."""
        self._listener.close()
        self._thread.join(timeout=30)
        if self._thread.is_alive():
            raise RuntimeError("the machine is gone and its disk is still being written")

    def _serve(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except OSError:
            return  # closed before anybody came
        with peer, peer.makefile("rb", buffering=1 << 20) as incoming:
            try:
                if self._shake_hands(peer, incoming):
                    self._serve_requests(peer, incoming)
            except (ConnectionError, EOFError):
                pass  # the plug was pulled: that's what this is for

    def _shake_hands(self, peer: socket.socket, incoming: object) -> bool:
        peer.sendall(MAGIC + OPTION_MAGIC + struct.pack(">H", FIXED_NEWSTYLE | NO_ZEROES))
        _exactly(incoming, 4)
        while True:
            head = _exactly(incoming, 16)
            option, length = struct.unpack(">II", head[8:])
            _exactly(incoming, length)
            if option == OPT_EXPORT_NAME:
                peer.sendall(struct.pack(">QH", self._disk.size, FLAGS))
                return True
            if option in (OPT_GO, OPT_INFO):
                info = struct.pack(">HQH", 0, self._disk.size, FLAGS)
                peer.sendall(_option_reply(option, REP_INFO, info) + _option_reply(option, REP_ACK, b""))
                if option == OPT_GO:
                    return True
            elif option == OPT_ABORT:
                peer.sendall(_option_reply(option, REP_ACK, b""))
                return False
            else:
                peer.sendall(_option_reply(option, REP_UNSUPPORTED, b""))

    def _serve_requests(self, peer: socket.socket, incoming: object) -> None:
        while True:
            magic, flags, command, cookie, offset, length = struct.unpack(">IHHQQI", _exactly(incoming, 28))
            if magic != REQUEST_MAGIC:
                raise ConnectionError("not a request")
            self.requests += 1
            error, answer = 0, b""
            if command == READ:
                answer = self._disk.read(offset, length)
            elif command == WRITE:
                self._disk.write(offset, _exactly(incoming, length), through=bool(flags & FUA))
            elif command == FLUSH:
                self._disk.flush()
            elif command == LEAVE:
                return
            else:
                error = UNKNOWN
            peer.sendall(struct.pack(">IIQ", SIMPLE_MAGIC, error, cookie) + answer)


def _option_reply(option: int, kind: int, data: bytes) -> bytes:
    return struct.pack(">QIII", REPLY_MAGIC, option, kind, len(data)) + data


def _exactly(incoming: object, length: int) -> bytes:
    data: bytes = incoming.read(length)  # type: ignore[attr-defined]  # a buffered reader
    if len(data) < length:
        raise EOFError
    return data
