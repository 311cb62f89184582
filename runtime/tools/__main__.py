"""``python -m runtime.tools FD DIR``: the tools host's process; it ends with its link, which is that descriptor."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

from capsule.frames import Hello
from runtime.tools.host import Host, Line, leave
from runtime.tools.loading import load_modules
from runtime.tools.protocol import TOOLS_PROTOCOL, Load, Loading, Ready

NICENESS = 10


def main(argv: list[str]) -> None:
    """Import the modules of the folder and serve calls of their tools; exit status 2 for wrong arguments."""
    if len(argv) != 2 or not argv[0].isdecimal():
        print("usage: python -m runtime.tools FD DIR", file=sys.stderr)
        leave(2)
    os.nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the kernel ends us in order
    sys.dont_write_bytecode = True  # the agent's folder is its owner's
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr] # as Python made them
    line = Line(socket.socket(fileno=int(argv[0])))
    folder = Path(argv[1]).absolute()
    os.set_inheritable(int(argv[0]), False)  # what a tool starts must not hold the link open
    line.send(Hello(protocol=TOOLS_PROTOCOL, pid=os.getpid()))
    hello = line.receive(Hello)
    if hello.protocol != TOOLS_PROTOCOL:
        print(f"the kernel speaks {hello.protocol!r}, not {TOOLS_PROTOCOL!r}", file=sys.stderr)
        leave(1)
    load = line.receive()
    if not isinstance(load, Load):
        leave(1)
    os.chdir(folder.parent)
    loaded = load_modules(folder, skip=load.skip, loading=lambda name: line.send(Loading(name)))
    host = Host(line, loaded.functions, folder=folder)
    asyncio.run(host.serve(Ready(loaded.modules, loaded.unavailable)))


if __name__ == "__main__":
    main(sys.argv[1:])
