"""A running child: its pid, its last words, its end, without a thread and without polling."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

CHILD = str(Path(__file__).with_name("child.py"))
LAST_WORDS = 20
MAX_LINE = 500
MAX_LINES_A_READ = 20
MAX_LAST_PIECES = 16


class Handle(Protocol):
    """What the process needs of ``subprocess.Popen`` or of a sandbox's launch."""

    pid: int

    def poll(self) -> int | None:
        """The exit code once it has ended."""


class Process:
    """Watches one child through a pidfd; ``ended`` is called once, on the loop, with the exit code.

    ``guest`` tells the pid of the process that does the work, which in a sandbox is not the one that was started.
    """

    def __init__(
        self,
        handle: Handle,
        *,
        ended: Callable[[int], None],
        said: Callable[[str], None],
        guest: Callable[[], int | None] | None = None,
    ) -> None:
        self.handle = handle
        self.pid = handle.pid
        self._guest = guest
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self._ended = ended
        self._said = said
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(handle.pid)
        self._loop.add_reader(self._pidfd, self._reap)
        self._partial = b""
        self._output = -1
        self._a_second = 0

    def listen(self, fd: int, *, a_second: int = 0) -> None:
        """Read the child's output from that pipe, which this object now owns.

        With ``a_second``, no more than so many bytes on average: one that floods waits for itself.
        """
        os.set_blocking(fd, False)
        self._output, self._a_second = fd, a_second
        self._loop.add_reader(fd, self._read)

    def _rest(self, read: int) -> None:
        self._loop.remove_reader(self._output)
        self._loop.call_later(read / self._a_second, self._go_on)

    def _go_on(self) -> None:
        if self._output >= 0:
            self._loop.add_reader(self._output, self._read)

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        if self._pidfd >= 0:
            signal.pidfd_send_signal(self._pidfd, number)

    @property
    def working_pid(self) -> int:
        """The process that does the work; 0 while a sandbox is still being built."""
        return self.pid if self._guest is None else self._guest() or 0

    @property
    def alive(self) -> bool:
        """Whether its end hasn't been seen yet."""
        return self._pidfd >= 0

    def _reap(self) -> None:
        code = self.handle.poll()
        if code is None:
            return
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        self._hear_last_words()
        self._ended(code)

    def _hear_last_words(self) -> None:
        """What it said last may still be in the pipe; what a descendant goes on saying is nobody's."""
        for _ in range(MAX_LAST_PIECES):
            if not self._read():
                break
        self._close_output()

    def _read(self) -> bool:
        """Take a piece of output; False when there is none now."""
        if self._output < 0:
            return False
        try:
            piece = os.read(self._output, 65_536)
        except BlockingIOError:
            return False
        if not piece:
            self._close_output()
            return False
        if self._a_second:
            self._rest(len(piece))
        *lines, self._partial = (self._partial + piece).split(b"\n")
        self._partial = self._partial[-MAX_LINE:]
        if len(lines) > MAX_LINES_A_READ:
            lines = [*lines[: MAX_LINES_A_READ - 1], b"... and more lines than anybody reads"]
        for line in lines:
            text = line[:MAX_LINE].decode(errors="replace").rstrip()
            self.last_words.append(text)
            self._said(text)
        return True

    def _close_output(self) -> None:
        if self._output >= 0:
            self._loop.remove_reader(self._output)
            os.close(self._output)
            self._output = -1


def spawn(
    argv: Sequence[str],
    *,
    cores: Sequence[int] = (),
    told: bytes = b"",
    own_output: bool = True,
    fds: Sequence[int] = (),
) -> tuple[subprocess.Popen[bytes], int | None]:
    """Start a program that dies with this thread; returns it and the pipe with its output.

    ``told`` waits on its standard input: up to a pipe's 64 KB, out of sight of other users, unlike arguments. ``fds``
    are descriptors that it inherits under the same numbers.

    Call it on the main thread alone: the death signal follows the thread that started the child.
    """
    pipe: tuple[int, int] | None = os.pipe() if own_output else None
    trampoline = [sys.executable, "-I", "-S", CHILD, str(os.getpid()), ",".join(map(str, cores)), *argv]
    try:
        popen = subprocess.Popen(
            trampoline,
            stdin=subprocess.PIPE,
            stdout=pipe[1] if pipe else None,
            stderr=pipe[1] if pipe else None,
            start_new_session=own_output,
            pass_fds=fds,
        )
    finally:
        if pipe:
            os.close(pipe[1])
    assert popen.stdin
    os.write(popen.stdin.fileno(), told)
    popen.stdin.close()
    return popen, pipe[0] if pipe else None
