"""The tools host as the kernel knows it: its process, what it offers now, and the watchdog that ends a stuck one."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from capsule.errors import FrameInvalid
from capsule.protocol import ToolCall
from capsule.scope import Module, Unavailable
from runtime.abi.clock import mono_us
from runtime.abi.errors import ToolUnavailable
from runtime.abi.telemetry import Refused
from runtime.kernel.process import Process, spawn
from runtime.kernel.supervisor import Row, Supervisor
from runtime.kernel.tools.link import ToolsLink
from runtime.tools.loading import module_files
from runtime.tools.protocol import THREADS, Invoke, Ready

NAME = "tools"
MAX_STUCK = 64
LEAVING_US = 2_000_000


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long the host may take, in seconds: to import one module, to answer, and with all threads stuck."""

    load_s: float = 30.0
    heartbeat_s: float = 10.0
    stuck_s: float = 2.0
    watch_s: float = 0.5


class ToolsHost:
    """Keeps the host running where there are modules; ``modules`` and ``unavailable`` are what there is now."""

    def __init__(
        self,
        folder: Path,
        *,
        supervisor: Supervisor,
        tell: Callable[[str, msgspec.Struct], None],
        changed: Callable[[], None],
        patience: Patience | None = None,
    ) -> None:
        self._folder = folder
        self._supervisor = supervisor
        self._tell = tell
        self._changed = changed
        self._patience = patience or Patience()
        self._names = [path.stem for path in module_files(folder)]
        self._skip: dict[str, str] = {}
        self._link: ToolsLink | None = None
        self._pings = 0
        self._killed = ""
        self._timer: asyncio.TimerHandle | None = None
        self.modules: list[Module] = []
        self.unavailable = self._all("it is being imported")
        self.imported = asyncio.Event()
        """Set when the first host is ready, or at once where there is nothing to import."""

    def start(self) -> None:
        """Start the host if there is anything for it; on the loop, in the main thread, returns at once."""
        if self._names:
            self._supervisor.add(Row(name=NAME, start=self._start))
            self._watch()
        else:
            self.imported.set()

    def close(self) -> None:
        """Watch no longer."""
        if self._timer:
            self._timer.cancel()

    @property
    def is_ready(self) -> bool:
        """Whether tools can be called now."""
        return self._link is not None and self._link.is_ready

    async def call(self, call: ToolCall, *, is_async: bool) -> Any:
        """What the tool returned; ``ToolUnavailable`` while no host is ready, ``ToolFailed`` when it failed."""
        if self._link is None or not self._link.is_ready:
            raise ToolUnavailable(f"{call.module}: {self.reason(call.module)}")
        invoke = Invoke(0, call.module, call.member, call.args, call.kwargs)
        return await self._link.call(invoke, threaded=not is_async)

    # -- its lives ---------------------------------------------------------------------------------

    def _start(self, ended: Callable[[int], None], said: Callable[[str], None]) -> Process:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        fd = theirs.fileno()
        argv = [sys.executable, "-P", "-m", "runtime.tools", str(fd), str(self._folder)]
        try:
            popen, output = spawn(argv, fds=(fd,))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._killed = ""
        link = self._link = ToolsLink(skip=self._skip, events=self)
        connecting = asyncio.get_running_loop().create_task(_connect(link, ours))
        connecting.add_done_callback(lambda task: task.result())
        process = Process(popen, ended=lambda code: self._ended(link, code, ended), said=said)
        if output is not None:
            process.listen(output)
        return process

    def _ended(self, link: ToolsLink, code: int, ended: Callable[[int], None]) -> None:
        """It is gone; a module that was being imported is to blame, and isn't imported again."""
        reason = self._killed or f"the tools host ended with {code}"
        if link.loading:
            self._skip[link.loading] = f"{reason} while importing it; it is tried again when the kernel starts again"
        link.close()
        ended(code)

    def _all(self, reason: str) -> list[Unavailable]:
        return [Unavailable(name=name, reason=self._skip.get(name, reason)) for name in self._names]

    def reason(self, module: str) -> str:
        """Why a module can't be used now."""
        return next((one.reason for one in self.unavailable if one.name == module), "there is no such module")

    # -- what it tells -----------------------------------------------------------------------------

    def ready(self, message: Ready) -> None:
        """All modules were imported or refused."""
        self.modules, self.unavailable = message.modules, message.unavailable
        self.imported.set()
        if self._link:
            self._link.ponged = self._pings  # what was asked before concerns an earlier life
        self._changed()

    def lost(self) -> None:
        """The link is gone, and the host with it or soon."""
        self.modules = []
        self.unavailable = self._all("the tools host ended; it is being started again")
        self._changed()

    def refused(self, error: FrameInvalid) -> None:
        """It broke the protocol."""
        self._tell("kernel:link:refused", Refused(code=error.code, example=error.message))
        self._kill(error.message)

    # -- the watchdog ------------------------------------------------------------------------------

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._patience.watch_s, self._watch)
        link = self._link
        if link is None or self._killed:
            return
        if link.lost_us is not None:
            if mono_us() - link.lost_us > LEAVING_US:
                self._kill("it closed its link and didn't end")
            return
        if reason := self._stuck(link, mono_us()):
            self._kill(reason)
        elif link.is_ready:
            self._pings += 1
            link.ping(self._pings)

    def _stuck(self, link: ToolsLink, now_us: int) -> str:
        """Why this host is beyond hope; "" while it isn't."""
        patience = self._patience
        if not link.is_ready:
            late = now_us - link.loading_since_us > patience.load_s * 1e6
            return f"it took more than {patience.load_s:g} s" if late else ""
        if (self._pings - link.ponged) * patience.watch_s > patience.heartbeat_s:
            return f"no heartbeat for {patience.heartbeat_s:g} s: a tool blocks its loop or holds the interpreter"
        stuck = [one for one in link.abandoned.values() if now_us - one.since_us > patience.stuck_s * 1e6]
        if sum(one.threaded for one in stuck) >= THREADS:
            return f"all {THREADS} threads are stuck in calls that nobody waits for"
        return f"{len(stuck)} calls were cancelled and don't end" if len(stuck) >= MAX_STUCK else ""

    def _kill(self, reason: str) -> None:
        self._killed = reason
        self._supervisor.kill(NAME, reason)


async def _connect(link: ToolsLink, sock: socket.socket) -> None:
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=sock)
