"""The kernel: joins sensors, log, brain, observers and commands, and knows their order at start and at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from capsule.errors import AxonError
from runtime.abi.clock import mono_us, wall_ms
from runtime.abi.errors import CommandRefused
from runtime.abi.link import Row as EntryRow
from runtime.abi.observe import RunFile
from runtime.abi.summary import Summary
from runtime.abi.telemetry import Fact
from runtime.ingest.command import Command, CommandGate
from runtime.ingest.ingest import Ingest
from runtime.ingest.refusals import Refusals
from runtime.kernel import run_clock
from runtime.kernel.actuators.actuators import Actuators
from runtime.kernel.agency import Agency
from runtime.kernel.brain_host import BrainHost
from runtime.kernel.brain_process import BrainStart, Sockets, attach, start_brain
from runtime.kernel.bus import Bus
from runtime.kernel.chronicle import GOING_ON, Chronicle
from runtime.kernel.commands import Commands, Status
from runtime.kernel.console import Console
from runtime.kernel.control import Control
from runtime.kernel.delivery import Delivery
from runtime.kernel.emergency import Emergency
from runtime.kernel.exchange import Exchange
from runtime.kernel.intake import Intake
from runtime.kernel.narrator import Narrator
from runtime.kernel.places import remove_run_file, socket_folder, write_run_file
from runtime.kernel.process_table import broker_row, driver_rows, drivers, program_row
from runtime.kernel.reckoning import reckon
from runtime.kernel.setup import Setup
from runtime.kernel.statistics import Statistics
from runtime.kernel.storage_news import StorageNews
from runtime.kernel.supervisor import Row, Supervisor
from runtime.mqtt.broker import BrokerPlan
from runtime.policy.policy import Policy

TICK_S = 1.0
WATCH_S = 0.25
CLOCK_STEP_MS = 500
REST_S = 0.5
GRACE_S = 3.0
FLUSH_S = 10.0
MAX_BACKGROUND = 64

InlineBrain = Callable[[Any, Any, str], Awaitable[None]]
"""Runs the brain in this process: its link, its page socket, the cognet's folder."""


class Kernel:
    """One run of one agent; ``run`` returns the summary when it has shut down."""

    def __init__(
        self,
        setup: Setup,
        broker: BrokerPlan,
        *,
        console: Console,
        inline_brain: InlineBrain | None = None,
        observers: Sequence[tuple[str, list[str]]] = (),
    ) -> None:
        self._setup = setup
        self._broker = broker
        self._console = console
        self._inline_brain = inline_brain
        self._observers = observers
        self._log = setup.log
        self._agent = setup.agent.agent.name
        self._stopping = asyncio.Event()
        self._background: list[asyncio.Task[Any]] = []
        self.failure: BaseException | None = None
        self.statistics = Statistics()
        self._bus = Bus()
        self._narrator = Narrator(setup.log, self._bus)
        self._chronicle = Chronicle(setup.log, narrator=self._narrator, say=console.say)
        self._supervisor = Supervisor(tell=self._narrator.tell, say=console.say)
        policy = Policy(setup.agent.policy)
        self.actuators = Actuators(
            setup.agent.actuators,
            agent=self._agent,
            boot=setup.boot_id,
            latch=setup.latch,
            check=policy.check,
            tell=self._narrator.tell,
            record=self._chronicle.record,
        )
        self._emergency = Emergency(
            latch=setup.latch,
            actuators=self.actuators,
            log=setup.log,
            narrator=self._narrator,
            changed=lambda: self._commands.changed(),
            say=console.say,
        )
        self.actuators.adopt = self._emergency.adopt
        self.agency = Agency(
            setup,
            narrator=self._narrator,
            supervisor=self._supervisor,
            say=console.say,
            settled=console.settled,
            policy=policy,
            mover=self.actuators,
        )
        self.brain = BrainHost(
            setup,
            verbs=self.agency.verbs,
            narrator=self._narrator,
            statistics=self.statistics,
            say=console.say,
            kill=lambda reason: self._supervisor.kill("brain", reason),
        )
        self._join_mqtt()
        self._control = Control(
            {
                "say": self._say,
                "interrupt": self._interrupt,
                "stop": self._emergency.stop,
                "clear": self._emergency.clear,
                "status": self._emergency.status,
                "summary": self.summary,
                "engines": self.agency.engines.table,
                "pids": self._pids,
                **self.agency.requests,
            },
            forsaken=("exec",),
        )

    def _join_mqtt(self) -> None:
        """Ingest, delivery and commands, and the two connections that serve them."""
        self.ingest = Ingest(
            agent=self._agent,
            log_admit=self._log.admit,
            media=self._setup.media,
            marks=self._log.marks,
            transient=frozenset(s.channel for s in self._setup.agent.sensors if s.transient),
            tell=self._narrator.tell,
        )
        self._intake = Intake(
            agent=self._agent,
            ingest=self.ingest,
            log=self._log,
            transient=self.brain.stream,
        )
        self._delivery = Delivery(agent=self._agent)
        self._command_refusals = Refusals("kernel:command:refused", self._narrator.tell)
        self._commands = Commands(
            agent=self._agent, gate=CommandGate(), status=self._status, act=self._act, refused=self._refuse_command
        )
        self._intake.changed = self._commands.changed
        self._exchange = Exchange(
            agent=self._agent,
            intake=self._intake,
            delivery=self._delivery,
            commands=self._commands,
            announcer=self.agency.announcer,
            say=self._console.say,
        )

    # -- the whole run -----------------------------------------------------------------------------

    async def run(self, for_s: float | None = None) -> Summary:
        """Start everything, let it run until told to stop (or for so long), shut down, and sum up."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        try:
            await self._start()
            await run_clock.until_ready(self._ready, stopping=self._stopping)
            self.statistics.begin(self.ingest.counts)
            self._console.settled(GOING_ON)
            await run_clock.count(for_s, stopping=self._stopping)
        finally:
            await self._shutdown()
        return await self.summary()

    def stop(self) -> None:
        """Ask the run to end; a second time changes nothing."""
        self._stopping.set()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._log.on_admitted = self._admitted
        self._log.on_retired = self.brain.retire
        self._log.on_durable = self._durable
        self._log.on_page = self.brain.heard
        StorageNews(self._log, narrator=self._narrator, say=partial(self._console.say, always=True)).listen(loop)
        self._log.start(loop)
        self._chronicle.tell_boot(setup=self._setup, broker=self._broker.kind)
        run = await self._open_sockets()
        self.agency.start(self.brain)
        if self._setup.asked.brain:
            self._start_brain()
        if self._setup.needs_mqtt:
            self._start_mqtt()
        for name, argv in self._observers:
            self._supervisor.add(program_row(name, argv))
        self._keep(self._every_second(), self._watch_brain(), self._emergency.keep_recording())
        await asyncio.to_thread(write_run_file, self._setup.data, run)

    async def _open_sockets(self) -> RunFile:
        folder = socket_folder(self._setup.data)
        control, bus = folder / "control", folder / "bus"
        for path in (control, bus):
            path.unlink(missing_ok=True)  # this process holds the agent's lock: nobody else listens there
        await self._bus.listen(bus)
        await self._control.listen(control)
        return RunFile(
            pid=os.getpid(),
            agent=self._agent,
            session=self._setup.session.id,
            boot_id=self._setup.boot_id,
            control=str(control),
            bus=str(bus),
            broker=str(self._broker.address) if self._setup.needs_mqtt else "",
            command=self._setup.asked.command,
        )

    def _start_mqtt(self) -> None:
        if self._broker.argv:
            self._supervisor.add(broker_row(self._broker, self._setup.profile))
        self._exchange.start(self._broker.address)
        self._keep(self.actuators.serve(self._broker.address))
        if self._setup.asked.drivers:
            for row in driver_rows(self._setup, self._broker.address):
                self._supervisor.add(row)

    def _start_brain(self) -> None:
        if self._inline_brain:
            sockets = Sockets.make()
            path = str(self._setup.cognet.folder)
            attach(self.brain, sockets, path)
            self._keep(self._inline_brain(sockets.brain_link, sockets.brain_pages, path))
            return
        start = BrainStart(
            agent=self._setup.agent.folder,
            cognet=self._setup.cognet.folder,
            sandboxed=self._setup.sandboxed,
            host=self.brain,
        )
        self._supervisor.add(Row(name="brain", start=lambda ended, said: start_brain(start, ended=ended, said=said)))

    async def _shutdown(self) -> None:
        """The order of DESIGN 6; correctness never depends on any of it."""
        self.statistics.finish(self.ingest.counts, self._log.last_seq)
        self.brain.finish()
        self._stopping.set()
        await self._sample()
        self._narrator.tell("kernel:shutdown", Fact())
        await self.actuators.rest(REST_S)
        self._supervisor.retire("brain")
        self.agency.interrupt()
        await self.brain.stop(GRACE_S)
        await self._supervisor.end("brain")
        await asyncio.gather(*(self._supervisor.end(name) for name in drivers(self._setup)))
        await self._control.close()
        await self.actuators.close()
        await self._exchange.close()
        await self._flush()
        for name in list(self._supervisor.children):
            await self._supervisor.end(name)
        for task in self._background:
            task.cancel()
        if self._background:
            await asyncio.wait(self._background)
        await self.agency.close()
        await self._log.close(clean=True)
        await self._bus.close()
        await asyncio.to_thread(remove_run_file, self._setup.data)
        self._setup.session.release()

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._log.durable(self._log.last_seq)
        except (TimeoutError, AxonError) as error:
            self._console.say(f"[kernel] the last entries are not on the disk: {error or 'it did not answer in time'}")

    # -- every second ------------------------------------------------------------------------------

    async def _every_second(self) -> None:
        offset_ms = wall_ms() - mono_us() / 1000
        while True:
            await asyncio.sleep(TICK_S)
            self.statistics.committed(self._log.commit_times())
            self._command_refusals.flush(mono_us())
            now_ms = wall_ms() - mono_us() / 1000
            if abs(now_ms - offset_ms) > CLOCK_STEP_MS:
                self._clock_stepped(round(now_ms - offset_ms))
                offset_ms = now_ms
            if not self._stopping.is_set():
                await self._sample()

    async def _watch_brain(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            self.brain.watch()

    async def _sample(self) -> None:
        observers = {name for name, _ in self._observers}
        agents = {name: pid for name, pid in self._supervisor.pids().items() if name not in observers}
        pids = {"kernel": (os.getpid(), 0), **agents}
        await asyncio.to_thread(self.statistics.process_meter.sample, pids, self._setup.media.resident_bytes)

    def _clock_stepped(self, by_ms: int) -> None:
        text = f"the wall clock stepped by {by_ms / 1000:+.1f} s; order is by seq and unchanged"
        self._chronicle.record("clock", text, by_ms=by_ms)

    # -- what the log tells ------------------------------------------------------------------------

    def _admitted(self, rows: list[EntryRow]) -> None:
        """Entries are in the projection: the brain sees them, an interrupt acts."""
        self.brain.stream(rows)
        self.agency.admitted(rows)

    def _durable(self, rows: list[EntryRow]) -> None:
        """Entries are on the disk: now the world may hear of them."""
        self.actuators.durable(rows)
        seq = rows[-1].seq
        self._intake.durable(seq)
        self._bus.durable(rows)
        self._delivery.durable(rows)

    # -- commands ----------------------------------------------------------------------------------

    async def _say(self, text: str, channel: str = "person", source: str = "") -> dict[str, int]:
        row = self.ingest.say(channel, text, source or None)
        await self._log.durable(row.seq)
        return {"seq": row.seq}

    async def _interrupt(self, by: str = "person", reason: str = "") -> dict[str, int]:
        return {"seq": await self._emergency.interrupt(by=by, reason=reason)}

    async def _act(self, command: Command) -> None:
        """A command that came over MQTT; its record is written while the next command is already read."""
        if len(self._background) > MAX_BACKGROUND:
            self._refuse_command(CommandRefused(f"{command.name}: {MAX_BACKGROUND} commands are being recorded"))
            if command.name == "stop" and not command.clear and not self._emergency.latched:
                self._emergency.stop_now(by=command.by, reason=command.reason or "")
            return
        by = command.by or "mqtt"
        work: Awaitable[Any]
        if command.name == "approve":
            work = self.agency.tools.approvals.answer(command.approval, approve=not command.deny, by=by)
        elif command.name == "interrupt":
            work = self._emergency.interrupt(by=by, reason=command.reason or "", command=command.id)
        elif command.clear:
            work = self._emergency.clear(by=by)
        else:
            work = self._emergency.stop(by=by, reason=command.reason or "")
        self._keep(self._finish(command, work))

    async def _finish(self, command: Command, work: Awaitable[Any]) -> None:
        try:
            await work
        except AxonError as error:
            self._console.say(f"[kernel] {command.name} over MQTT: {error}")

    async def _pids(self) -> dict[str, int]:
        """Every process by its name, for a debugger or a profiler; 0 while one is down."""
        return {"kernel": os.getpid(), **{name: pid for name, (pid, _) in self._supervisor.pids().items()}}

    def _refuse_command(self, error: CommandRefused) -> None:
        self._command_refusals.add(error.code, error.message, channel="", now_us=mono_us())

    def _status(self) -> Status:
        return Status(
            state="online" if self._intake.listening else "connecting",
            stopped=self._emergency.latched,
            session=self._setup.session.id,
            boot=self._setup.boot_id,
        )

    # -- figures -----------------------------------------------------------------------------------

    def _ready(self) -> bool:
        """Whether the brain is up and every driver has delivered once, as far as there are any."""
        asked = self._setup.asked
        seen = [channel for channel, counts in self.ingest.counts.items() if counts.received]
        return (self.brain.loaded or not asked.brain) and all(
            any(name == s.channel or name.startswith(f"{s.channel}.") for name in seen)
            for s in (self._setup.agent.sensors if asked.drivers else ())
        )

    async def summary(self) -> Summary:
        """The figures since counting began."""
        return reckon(
            self._setup,
            statistics=self.statistics,
            brain=self.brain,
            refused=self.ingest.refused | self._command_refusals.totals,
            counts=self.ingest.counts,
            stopped=self._emergency.latched,
            notices=list(self._console.notices),
            actuators=self.actuators.states,
        )

    # -- tasks -------------------------------------------------------------------------------------

    def _keep(self, *works: Any) -> None:
        for work in works:
            task = asyncio.ensure_future(work)
            self._background.append(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        """A defect in a background task ends the run loudly, not silently."""
        self._background.remove(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        self.failure = error
        self._stopping.set()
        if isinstance(error, AxonError):
            self._console.say(f"[kernel] {error}")
        else:
            for line in traceback.format_exception(error):
                self._console.say(f"[kernel] {line.rstrip()}")
