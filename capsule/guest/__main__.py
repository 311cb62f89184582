"""``python -m capsule.guest FD``: the process of one incarnation; it ends with its socket."""

from __future__ import annotations

import os
import socket
import sys
import threading

from capsule.guest.interpreter import Interpreter
from capsule.guest.wire import Wire
from capsule.protocol import Ready
from capsule.sandbox.lock import lock_down

NICE = 10


def main(argv: list[str]) -> int:
    """Never returns in order; 2 for wrong usage."""
    if len(argv) != 1 or not argv[0].isdecimal():
        print("usage: python -m capsule.guest FD", file=sys.stderr)
        return 2
    os.nice(NICE)
    wire = Wire(socket.socket(fileno=int(argv[0])))
    interpreter = Interpreter(wire)
    interpreter.install()
    lock_down()  # nothing happens where the kernel started us without a sandbox
    wire.greet()
    threading.Thread(target=wire.listen, args=(interpreter.take,), name="listen", daemon=True).start()
    wire.send(Ready())
    interpreter.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
