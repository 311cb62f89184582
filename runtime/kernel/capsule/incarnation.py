"""One incarnation: the sandboxed process of a persistent interpreter, from its start to its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from capsule.errors import AxonError
from capsule.protocol import FromGuest, Ready, Scoped, ToGuest
from capsule.sandbox.launcher import Launched, launch
from capsule.sandbox.limits import Limits
from capsule.sandbox.plan import Bind, Plan, python_plan
from capsule.scope import AxonScope
from runtime.kernel.capsule.link import CapsuleLink
from runtime.kernel.process import Process

PACKAGE = Path(__file__).resolve().parents[3] / "capsule"
THREADS = 160
"""A thread a block of a list, and what those start; for the process's user, not counting others'."""

SAID_A_SECOND = 4096
"""Bytes that are read of what the process itself prints, which no block does in order: a flood waits in its pipe."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What every incarnation of an agent has in common."""

    sandboxed: bool
    memory_bytes: int
    binds: list[Bind] = []


class IncarnationEvents(Protocol):
    """What the capsule wants to hear."""

    def ready(self, incarnation: Incarnation) -> None:
        """It takes blocks now."""

    def heard(self, incarnation: Incarnation, message: FromGuest) -> None:
        """Any other message; whatever this raises ends it."""

    def refused(self, incarnation: Incarnation, error: AxonError) -> None:
        """It broke the protocol, and is being ended."""


def capsule_plan(shape: Shape, fds: tuple[int, ...]) -> Plan:
    """The guest's process: Python, its packages, the package ``capsule``, and one socket."""
    return python_plan(
        "capsule.guest",
        [str(fd) for fd in fds],
        packages=[PACKAGE],
        extra=shape.binds,
        fds=fds,
        limits=Limits(memory_bytes=shape.memory_bytes, processes=THREADS),
    )


class Incarnation:
    """Made on the main thread; ``is_ready`` once it takes blocks."""

    def __init__(self, shape: Shape, *, events: IncarnationEvents, scope: AxonScope) -> None:
        self._shape = shape
        self._events = events
        self._scope = scope
        self._link = CapsuleLink(self)
        self._launched: Launched | None = None
        self._process: Process | None = None
        self._ended: Callable[[int], None] = lambda _code: None
        self._said: Callable[[str], None] = lambda _line: None
        self.is_ready = False
        self.reason = ""
        """Why it is being ended, when somebody here did that."""
        self.is_known = False
        """Once it has ended: whether all that it said was heard, to the last; else it may have begun anything."""

    def start(self, ended: Callable[[int], None], said: Callable[[str], None]) -> Process:
        """Start its process; returns at once. Raises ``SandboxUnavailable``."""
        self._ended, self._said = ended, said
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            launched = self._launched = launch(
                capsule_plan(self._shape, (theirs.fileno(),)), sandboxed=self._shape.sandboxed
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        connecting = asyncio.get_running_loop().create_task(_connect(self._link, ours))
        connecting.add_done_callback(lambda task: task.result())

        def closed(code: int) -> None:
            self.is_ready = False
            self.is_known = self._link.finish(ours)
            launched.close()
            self._ended(code)

        process = Process(
            launched.popen, ended=closed, said=lambda line: self._said(line), guest=lambda: launched.guest_pid
        )
        assert launched.popen.stdout
        process.listen(os.dup(launched.popen.stdout.fileno()), a_second=SAID_A_SECOND)
        self._process = process
        return process

    def hand_over(self, ended: Callable[[int], None], said: Callable[[str], None]) -> Process | None:
        """Its running process, which from now on tells these; None when it has none."""
        if self._process is None or not self._process.alive or self.reason:
            return None
        self._ended, self._said = ended, said
        return self._process

    @property
    def last_words(self) -> str:
        """The last line that its process printed."""
        return self._process.last_words[-1] if self._process and self._process.last_words else ""

    def send(self, message: ToGuest) -> None:
        """Send a message."""
        self._link.send(message)

    def scope_changed(self, scope: AxonScope) -> None:
        """What can be imported from now on."""
        self._scope = scope
        if self.is_ready:
            self._link.send(Scoped(scope))

    def signal(self) -> None:
        """SIGINT to the interpreter."""
        pid = self._launched.guest_pid if self._launched and self._process and self._process.alive else None
        if pid:
            with suppress(ProcessLookupError):  # it has just ended; that is heard in a moment
                os.kill(pid, signal.SIGINT)

    def kill(self, reason: str) -> None:
        """End it at once, whatever it does."""
        self.reason = self.reason or reason
        self.is_ready = False
        if self._process:
            self._process.signal(signal.SIGKILL)

    # -- what its link tells -----------------------------------------------------------------------

    def heard(self, message: FromGuest) -> None:
        """A message of the guest."""
        if isinstance(message, Ready) and not self.is_ready and not self.reason:
            self.is_ready = True
            self._link.send(Scoped(self._scope))
            self._events.ready(self)
        else:
            self._events.heard(self, message)

    def refused(self, error: AxonError) -> None:
        """It broke the protocol."""
        self.kill(error.message)
        self._events.refused(self, error)


async def _connect(link: CapsuleLink, sock: socket.socket) -> None:
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=sock)
