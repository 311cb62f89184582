"""Starts the brain: two socket pairs, the sandbox, and the kernel's end of the link."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec

from capsule.sandbox.launcher import launch
from runtime.kernel.brain_host import BrainHost
from runtime.kernel.brain_link import BrainLink
from runtime.kernel.brain_sandbox import COGNET_INSIDE, brain_plan
from runtime.kernel.process import Process


class Sockets(msgspec.Struct, frozen=True):
    """The kernel's ends of the link and of the page socket, and the brain's."""

    link: socket.socket
    pages: socket.socket
    brain_link: socket.socket
    brain_pages: socket.socket

    @classmethod
    def make(cls) -> Sockets:
        """Two pairs; the kernel's end of the link doesn't block."""
        link, brain_link = socket.socketpair()
        pages, brain_pages = socket.socketpair()
        link.setblocking(False)
        return cls(link, pages, brain_link, brain_pages)

    def close_brain_ends(self) -> None:
        """The child has its own copies."""
        self.brain_link.close()
        self.brain_pages.close()


class BrainStart(msgspec.Struct, frozen=True, kw_only=True):
    """What starting a brain needs."""

    agent: Path
    cognet: Path
    sandboxed: bool
    host: BrainHost


def start_brain(start: BrainStart, *, ended: Callable[[int], None], said: Callable[[str], None]) -> Process:
    """Start one life of the brain; on the main thread, returns at once."""
    sockets = Sockets.make()
    try:
        fds = (sockets.brain_link.fileno(), sockets.brain_pages.fileno())
        launched = launch(brain_plan(start.agent, start.cognet, fds), sandboxed=start.sandboxed)
    except BaseException:
        sockets.link.close()
        sockets.pages.close()
        raise
    finally:
        sockets.close_brain_ends()
    attach(start.host, sockets, COGNET_INSIDE if start.sandboxed else str(start.cognet))

    def closed(code: int) -> None:
        launched.close()
        ended(code)

    process = Process(launched.popen, ended=closed, said=said, guest=lambda: launched.guest_pid)
    assert launched.popen.stdout
    process.listen(os.dup(launched.popen.stdout.fileno()))
    return process


def attach(host: BrainHost, sockets: Sockets, cognet_path: str) -> None:
    """Join the kernel's ends to a new link and a page server."""
    link = host.new_link(cognet_path)
    loop = asyncio.get_running_loop()
    connecting = loop.create_task(_connect(link, sockets.link))
    connecting.add_done_callback(lambda task: task.result())
    host.serve_pages(sockets.pages)


async def _connect(link: BrainLink, sock: socket.socket) -> None:
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=sock)
