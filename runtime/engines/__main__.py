"""``python -m runtime.engines FD``: an engine worker's process; it ends with its socket."""

from __future__ import annotations

import os
import signal
import socket
import sys

from runtime.engines.worker import Worker

NICE = 10


def main(argv: list[str]) -> int:
    """Serve one engine; the exit status: 0 the kernel hung up, 1 it can't be loaded, 2 usage."""
    if len(argv) != 1 or not argv[0].isdecimal():
        print("usage: python -m runtime.engines FD", file=sys.stderr)
        return 2
    os.nice(NICE)  # an engine never takes time from kernel, brain and sensors
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the kernel ends us in order
    try:
        return Worker(socket.socket(fileno=int(argv[0]))).run()
    except (ConnectionResetError, BrokenPipeError):
        return 0  # the kernel is gone


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a thread in the middle of an answer must not keep a worker alive that has no kernel
