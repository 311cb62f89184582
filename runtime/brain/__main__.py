"""``python -m runtime.brain LINK_FD PAGE_FD``: the brain's process; it ends with its link."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

import uvloop

from capsule.errors import AxonError
from capsule.sandbox.lock import lock_down
from runtime.abi.errors import BrainLost
from runtime.brain.brain import run_brain


def main(argv: list[str]) -> int:
    """Run the brain; the exit status: 0 stopped, 1 the cognet can't be loaded or the kernel is gone, 2 usage."""
    if len(argv) != 2 or not all(text.isdecimal() for text in argv):
        print("usage: python -m runtime.brain LINK_FD PAGE_FD", file=sys.stderr)
        return 2
    lock_down()  # before the cognet is imported; nothing happens where the kernel started us without a sandbox
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the kernel ends us in order
    link, pages = (socket.socket(fileno=int(text)) for text in argv)
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)  # never closed: that waits for tasks and threads
    try:
        runner.run(run_brain(link, pages, whole_process=True))
    except AxonError as error:
        if isinstance(error, BrainLost):  # of all else the kernel has been told, and says it
            print(f"{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a thread of the cognet's must not keep a brain alive that has no kernel
