"""Joins the brain's parts: welcome, load, boot hooks, wakes, shutdown."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from pathlib import Path
from typing import Any

import msgspec

from capsule.errors import AxonError, FrameInvalid
from runtime.abi.clock import mono_us
from runtime.abi.errors import CognetInvalid, to_wire
from runtime.abi.link import (
    Engines,
    Entries,
    FromBrain,
    FromKernel,
    Heartbeat,
    Loaded,
    LoadFailed,
    Retired,
    Row,
    Scoped,
    Stop,
    Stopped,
    Welcome,
)
from runtime.brain.clock import Clocks
from runtime.brain.cognet import Cognet, unload
from runtime.brain.connection import Connection
from runtime.brain.declare import Hook
from runtime.brain.failure import describe
from runtime.brain.history import Session
from runtime.brain.invocation import Invocation, unanswered
from runtime.brain.narration import Narration
from runtime.brain.pages import Pages
from runtime.brain.scheduler import Scheduler
from runtime.brain.scope import hook_scope
from runtime.brain.stimuli import Inbox, Mask
from runtime.brain.syscalls import Syscalls
from runtime.brain.verbs import binding
from runtime.brain.window import Window

INTERRUPT = "axon:interrupt"
CLOSE_S = 1.0


class Brain:
    """Everything between the welcome and the end; ``Surroundings`` of its runs."""

    def __init__(self, welcome: Welcome, *, connection: Connection, pages: Pages, whole_process: bool) -> None:
        self.welcome = welcome
        self._whole_process = whole_process
        self.connection = connection
        self.max_ticks = welcome.max_ticks_per_wake
        self.window = Window(capacity=max(1, welcome.window_entries), log_end=welcome.last_seq)
        self.session = Session(window=self.window, pages=pages, first_seq=welcome.first_seq)
        is_invocation = welcome.mode == "invocation"
        cursor = welcome.settled_seq if is_invocation else welcome.last_seq
        self.inbox = Inbox(window=self.window, session=self.session, cursor=cursor)
        self.narration = Narration(connection, self.window)
        self.clocks = Clocks(narration=self.narration, send=connection.send)
        self.scheduler = Scheduler(self, wakes=welcome.wakes, max_overlap=welcome.max_overlap)
        self.syscalls = Syscalls(
            welcome=welcome,
            connection=connection,
            session=self.session,
            narration=self.narration,
            scheduler=self.scheduler,
            clocks=self.clocks,
        )
        self.mask = Mask(welcome.wake_on)
        self.invocation = self._make_invocation() if is_invocation else None
        self.cognet: Cognet
        self._began_us = mono_us()
        self._beat: asyncio.TimerHandle | None = None

    def _make_invocation(self) -> Invocation:
        return Invocation(scheduler=self.scheduler, mask=self.mask, window=self.window, settle=self.syscalls.settle)

    # -- what runs need ----------------------------------------------------------------------------

    def send(self, message: FromBrain) -> None:
        """Tell the kernel."""
        self.connection.send(message)

    def took_stimuli(self) -> None:
        """A tick has taken all stimuli."""
        if self.invocation is not None:
            self.invocation.took()

    def overlap(self) -> int:
        """How many wakes are open."""
        return self.scheduler.open_wakes

    # -- what arrives ------------------------------------------------------------------------------

    def take(self, rows: list[Row]) -> None:
        """Entries in the order of their admission."""
        for row in rows:
            if row.seq:
                self.window.append(row.seq, row.body)
            self.inbox.add(row)
            if row.seq == 0 or row.seq > self.welcome.last_seq:
                self._live(row)

    def _live(self, row: Row) -> None:
        if row.type == INTERRUPT:
            self.scheduler.interrupt()
        elif self.invocation is not None:
            self.invocation.arrived(row)

    # -- its life ----------------------------------------------------------------------------------

    async def start(self, folder: Path) -> None:
        """Load the cognet, run its boot hooks, begin to serve wakes; raises ``AxonError``."""
        binding.clear()
        self.cognet = await asyncio.to_thread(Cognet.load, folder)
        binding.bind(self.syscalls)
        for hook in self.cognet.hooks["boot"]:
            await self._boot(hook)
        if self._whole_process:
            gc.collect()
            gc.freeze()  # what is loaded stays: later collections needn't walk it in the middle of a wake
        self.send(Loaded(self.session.reads.count, mono_us() - self._began_us))
        self.scheduler.open()
        self.clocks.open()

    async def look_back(self) -> None:
        """Wake an invocation cognet for what earlier lives left unanswered; from then on for what arrives."""
        if self.invocation is None:
            return
        settled_seq, upto = self.welcome.settled_seq, self.welcome.last_seq
        found = settled_seq < upto
        if found:
            try:
                found = await asyncio.to_thread(unanswered, self.session, self.mask, settled_seq=settled_seq, upto=upto)
            except (AxonError, msgspec.MsgspecError) as error:  # rather a wake too many than a stimulus nobody answers
                self.narration.report(f"what was left unanswered couldn't be read: {error}")
        self.invocation.open(unanswered=found)

    async def _boot(self, hook: Hook) -> None:
        try:
            with hook_scope():
                await hook()
        except AxonError:
            raise
        except (Exception, SystemExit) as error:
            raise CognetInvalid(f"a boot hook failed: {describe(error)}", cognet=self.welcome.cognet) from error

    async def stop(self, grace_s: float) -> None:
        """Admit no wake, interrupt the open ones, run the shutdown hooks, say ``Stopped``; bounded."""
        deadline = asyncio.get_running_loop().time() + grace_s
        self.clocks.close()
        if not await self.scheduler.close(grace_s / 2):
            self.narration.report("a wake didn't end when it was interrupted", level="warning")
        for hook in self.cognet.hooks["shutdown"]:
            await self._shutdown(hook, deadline)
        self.syscalls.is_over = True
        self.send(Stopped())

    async def _shutdown(self, hook: Hook, deadline: float) -> None:
        try:
            with hook_scope():
                async with asyncio.timeout_at(deadline):
                    await hook()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the other hooks have their turn; it is told
            self.narration.report(f"a shutdown hook failed: {describe(error)}")

    def beat(self) -> None:
        """Tell that the loop turns, four times in each ``heartbeat_s``, and what was lost meanwhile."""
        self.send(Heartbeat(mono_us()))
        for count, what in (
            (self.connection.take_dropped(), "events of telemetry were dropped: the kernel read too slowly"),
            (self.inbox.take_lost(), "transient stimuli were dropped: no tick took them in time"),
        ):
            if count:
                self.narration.report(f"{count} {what}", level="warning")
        self._beat = asyncio.get_running_loop().call_later(self.welcome.heartbeat_s / 4, self.beat)

    def end(self) -> None:
        """Let go of everything; what still runs of the cognet finds no kernel."""
        if self._beat is not None:
            self._beat.cancel()
        self.clocks.close()
        self.scheduler.abandon()
        self.syscalls.is_over = True
        if binding.end(self.syscalls):
            unload()


class Life:
    """One connection to the kernel, from the hellos to the end."""

    def __init__(self, pages: socket.socket, *, whole_process: bool) -> None:
        self._whole_process = whole_process
        self._pages = Pages(pages, pid=os.getpid())
        self._connection = Connection(self._receive)
        self._loop = asyncio.get_running_loop()
        self._welcomed: asyncio.Future[Brain] = self._loop.create_future()
        self._stop: asyncio.Future[float] = self._loop.create_future()

    def _receive(self, message: FromKernel) -> None:
        if isinstance(message, Entries) and self._welcomed.done():
            self._welcomed.result().take(message.rows)
            return
        match message:
            case Welcome() if not self._welcomed.done():
                self._welcomed.set_result(self._new_brain(message))
            case Retired(first_seq) if self._welcomed.done():
                self._welcomed.result().session.retire(first_seq)
            case Scoped(scope) if self._welcomed.done():
                self._welcomed.result().syscalls.scope = scope
            case Engines(engines) if self._welcomed.done():
                self._welcomed.result().syscalls.engines = {facts.role: facts for facts in engines}
            case Stop(grace_s):
                if not self._stop.done():
                    self._stop.set_result(grace_s)
            case _:
                raise FrameInvalid(f"the kernel sent {type(message).__name__} out of turn")

    def _new_brain(self, welcome: Welcome) -> Brain:
        brain = Brain(welcome, connection=self._connection, pages=self._pages, whole_process=self._whole_process)
        if self._whole_process:
            self._loop.set_exception_handler(lambda _, context: _report(brain, context))
        return brain

    async def run(self, link: socket.socket, *, cognet_path: str | None) -> None:
        """Serve until the kernel says stop; raises the reason when the link is lost or the load fails."""
        await self._loop.create_unix_connection(lambda: self._connection, sock=link)
        try:
            brain = await self._unless_lost(self._welcomed)
            try:
                await self._serve(brain, Path(cognet_path or brain.welcome.cognet_path))
            finally:
                brain.end()
        finally:
            self._connection.close()
            await asyncio.wait([self._connection.lost], timeout=CLOSE_S)
            self._pages.close()

    async def _serve(self, brain: Brain, folder: Path) -> None:
        brain.beat()
        starting = self._loop.create_task(brain.start(folder))
        await self._unless_lost(starting, or_stopped=True)
        if starting.done():
            await self._started(brain, starting)
            looking_back = self._loop.create_task(brain.look_back())
            grace_s = await self._unless_lost(self._stop)
            looking_back.cancel()
            await self._unless_lost(self._loop.create_task(brain.stop(grace_s)))
        else:
            starting.cancel()
            await asyncio.wait([starting], timeout=self._stop.result())
            brain.send(Stopped())

    async def _started(self, brain: Brain, starting: asyncio.Task[None]) -> None:
        try:
            await starting
        except AxonError as error:
            brain.send(LoadFailed(to_wire(error)))
            raise

    async def _unless_lost(self, awaited: asyncio.Future[Any], *, or_stopped: bool = False) -> Any:
        """The result of ``awaited``; raises the reason if the link ends before."""
        others: list[asyncio.Future[Any]] = [self._connection.lost, *([self._stop] if or_stopped else [])]
        await asyncio.wait([awaited, *others], return_when=asyncio.FIRST_COMPLETED)
        if awaited.done():
            return None if or_stopped else await awaited
        if self._connection.lost.done():
            awaited.cancel()
            raise self._connection.lost.result()
        return None


def _report(brain: Brain, context: dict[str, Any]) -> None:
    """What nobody awaited: a task of the cognet's own that failed, a callback that raised."""
    error = context.get("exception")
    text = describe(error) if isinstance(error, BaseException) else ""
    brain.narration.report(f"{context.get('message', 'unhandled')}: {text}"[:4000])


async def run_brain(
    link: socket.socket, pages: socket.socket, *, cognet_path: str | None = None, whole_process: bool = False
) -> None:
    """Run one brain over these sockets until the kernel stops it.

    ``cognet_path`` stands in for the path in the welcome. ``whole_process`` lets it set up the process it
    has for itself. Raises ``BrainLost`` when the kernel is gone, ``CognetInvalid`` and others of a load that
    failed (the kernel has been told).
    """
    await Life(pages, whole_process=whole_process).run(link, cognet_path=cognet_path)
