"""Keeps what should run running: compares the table of wanted processes with the living ones, with back-off."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import msgspec

from runtime.abi.clock import mono_us
from runtime.abi.telemetry import ProcessChanged
from runtime.kernel.process import Process

BACK_OFF_S = (0.1, 5.0)
STEADY_S = 10.0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the table: its name, and how it starts (on the main thread, returning at once)."""

    name: str
    start: Callable[[Callable[[int], None], Callable[[str], None]], Process]
    quick: bool = False
    """A clean end is an end: not started again."""
    served: Callable[[], bool] | None = None
    """Whether the life that has just ended did its work: then the next one begins at once, without a word."""
    after_s: float = 0.0
    """How long the first life waits, and one in the place of a process that another row took over."""


class Child:
    """One row's present life."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.process: Process | None = None
        self.restarts = 0
        self.started_us = 0
        self.wait_s = BACK_OFF_S[0]
        self.timer: asyncio.TimerHandle | None = None
        self.wanted = True
        self.kill_reason = ""
        self.gone = asyncio.Event()


class Supervisor:
    """Starts, restarts and ends children; every change is told as telemetry."""

    def __init__(self, *, tell: Callable[[str, msgspec.Struct], None], say: Callable[[str], None]) -> None:
        self._tell = tell
        self._say = say
        self.children: dict[str, Child] = {}

    def add(self, row: Row) -> None:
        """Take a row into the table and start it."""
        child = self.children[row.name] = Child(row)
        if row.after_s:
            self._start_later(child, row.after_s)
        else:
            self._start(child)

    def vacate(self, name: str) -> None:
        """Another row took this one's process over: start one in its place."""
        child = self.children[name]
        child.process = None
        self._start_later(child, child.row.after_s)

    def kill(self, name: str, reason: str) -> None:
        """End a child that misbehaves; it starts again by the usual rule."""
        child = self.children.get(name)
        if child and child.process and child.process.alive:
            child.kill_reason = reason
            self._tell("kernel:process:killed", ProcessChanged(name=name, pid=child.process.pid, reason=reason))
            child.process.signal(signal.SIGKILL)

    def retire(self, name: str) -> None:
        """It is about to end by itself, and that is its end."""
        if name in self.children:
            self.children[name].wanted = False

    async def end(self, name: str, *, grace_s: float = 2.0) -> None:
        """SIGTERM, then SIGKILL after the grace; returns when it is gone."""
        child = self.children.get(name)
        if child is None:
            return
        child.wanted = False
        if child.timer:
            child.timer.cancel()
        if child.process is None or not child.process.alive:
            return
        child.process.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(child.gone.wait(), grace_s)
        except TimeoutError:
            child.process.signal(signal.SIGKILL)
            await child.gone.wait()

    def pids(self) -> dict[str, tuple[int, int]]:
        """Pid of the working process and restarts, by name; pid 0 while it is down."""
        return {
            name: (child.process.working_pid if child.process and child.process.alive else 0, child.restarts)
            for name, child in self.children.items()
        }

    def _start(self, child: Child) -> None:
        child.timer = None
        child.gone.clear()
        name = child.row.name
        child.started_us = mono_us()
        try:
            child.process = child.row.start(
                lambda code: self._ended(child, code), lambda line: self._say(f"[{name}] {line}")
            )
        except OSError as error:
            self._say(f"[{name}] can't be started: {error}")
            self._again(child)
            return
        self._tell("kernel:process:started", ProcessChanged(name=name, pid=child.process.pid, restarts=child.restarts))

    def _ended(self, child: Child, code: int) -> None:
        process, name = child.process, child.row.name
        reason, child.kill_reason = child.kill_reason, ""
        if not reason and code and process and process.last_words:
            reason = process.last_words[-1]
        self._tell(
            "kernel:process:ended",
            ProcessChanged(
                name=name, pid=process.pid if process else None, exit_code=code, reason=reason, restarts=child.restarts
            ),
        )
        child.gone.set()
        if child.wanted and child.row.served and child.row.served():
            child.restarts += 1
            child.wait_s = BACK_OFF_S[0]
            self._start(child)
        elif child.wanted and not (child.row.quick and code == 0):
            why = f": {reason}" if reason else ""
            self._say(f"[{name}] ended with {code}; starting it again in {child.wait_s:.1f} s{why}")
            self._again(child)

    def _again(self, child: Child) -> None:
        """Wait a little longer after each quick death, up to the limit; a steady life resets that."""
        if mono_us() - child.started_us > STEADY_S * 1e6:
            child.wait_s = BACK_OFF_S[0]
        child.restarts += 1
        self._start_later(child, child.wait_s)
        child.wait_s = min(child.wait_s * 2, BACK_OFF_S[1])

    def _start_later(self, child: Child, after_s: float) -> None:
        child.timer = asyncio.get_running_loop().call_later(after_s, self._start, child)
