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
AUTOGROUP = "/proc/self/autogroup"


def main(argv: list[str]) -> int:
    """Never returns in order; 2 for wrong usage."""
    if len(argv) != 1 or not argv[0].isdecimal():
        print("usage: python -m capsule.guest FD", file=sys.stderr)
        return 2
    _yield_to_others()
    wire = Wire(socket.socket(fileno=int(argv[0])))
    interpreter = Interpreter(wire)
    interpreter.install()
    lock_down()  # nothing happens where the kernel started us without a sandbox
    wire.greet()
    threading.Thread(target=wire.listen, args=(interpreter.take,), name="listen", daemon=True).start()
    wire.send(Ready())
    interpreter.serve()
    return 0


def _yield_to_others() -> None:
    """Linux may share the processor among sessions first, and this process has one of its own."""
    os.nice(NICE)
    try:
        with open(AUTOGROUP, "w") as group:
            group.write(str(NICE))
    except OSError:  # Linux without autogroups; and with them it hears one such word in 0.1 s, of all users together
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
