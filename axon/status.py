"""The live view of a running agent: an observer of its control socket, in a process of its own.

``python -m axon.status DIR``. On a terminal a table once a second; elsewhere one plain line every five seconds.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import msgspec
from rich.console import Console
from rich.live import Live

from axon.client import Control
from axon.status_view import Beat, line, table
from capsule.errors import AxonError
from runtime.abi.summary import Summary

EVERY_S = 1.0
LINE_EVERY_S = 5.0
APPEARS_S = 30.0


def connect(folder: Path, *, within_s: float = APPEARS_S) -> Control:
    """The kernel's control socket, which may still be about to open; ``AgentNotRunning`` when it doesn't."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return Control(folder)
        except AxonError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def watch(control: Control, console: Console) -> None:
    """Show one picture after the other until the kernel hangs up (``AgentNotRunning``)."""
    if not console.is_terminal:
        _lines(control, console)
        return
    before: Beat | None = None
    with Live(console=console, auto_refresh=False, screen=True, vertical_overflow="crop") as live:
        while True:
            beat = _beat(control)
            live.update(table(beat, before, height=console.height), refresh=True)
            before = beat
            control.rest(EVERY_S)


def _lines(control: Control, console: Console) -> None:
    before: Beat | None = None
    while True:
        beat = _beat(control)
        print(line(beat, before), file=console.file, flush=True)
        before = beat
        control.rest(LINE_EVERY_S)


def _beat(control: Control) -> Beat:
    return Beat(at_s=time.monotonic(), summary=msgspec.convert(control.ask("summary"), Summary))


def _end(*_: object) -> NoReturn:
    raise SystemExit(0)


def main() -> int:
    """Watch the agent in the folder that the first argument names."""
    signal.signal(signal.SIGTERM, _end)  # so that a terminal gets its cursor back
    try:
        with connect(Path(sys.argv[1])) as control:
            watch(control, Console())
    except (AxonError, KeyboardInterrupt, BrokenPipeError):
        pass  # the kernel, the person or the terminal has left: there is nothing more to show
    return 0


if __name__ == "__main__":
    sys.exit(main())
