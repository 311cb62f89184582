"""The brain as the kernel knows it: its present life, its wakes, and the watchdog that ends a silent one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping

from capsule.errors import AxonError, FrameInvalid
from capsule.scope import AxonScope
from runtime.abi.clock import mono_us
from runtime.abi.engines import EngineFacts
from runtime.abi.link import Admitted, Ended, Engines, Loaded, Missed, Retired, Row, Scoped, Welcome
from runtime.abi.telemetry import (
    Loaded as LoadedFact,
)
from runtime.abi.telemetry import (
    Refused,
    TelemetryEvent,
    WakeAdmitted,
    WakeSettled,
    WakesMissed,
)
from runtime.kernel.brain_link import BrainLink, Verb
from runtime.kernel.brain_sandbox import COGNET_INSIDE
from runtime.kernel.narrator import Narrator
from runtime.kernel.setup import Setup
from runtime.kernel.statistics import Statistics

LOAD_GRACE_S = 20.0
LEAVING_US = 2_000_000
MAX_AHEAD = 100_000
"""How far a wake's ordinal may run ahead of what was told: wakes tell of themselves in no fixed order."""


class BrainHost:
    """Hears what the brain tells (``BrainEvents``) and holds its present link."""

    def __init__(
        self,
        setup: Setup,
        *,
        verbs: Mapping[str, Verb],
        narrator: Narrator,
        statistics: Statistics,
        say: Callable[[str], None],
        kill: Callable[[str], None],
    ) -> None:
        self._setup = setup
        self._verbs = verbs
        self._narrator = narrator
        self._statistics = statistics
        self._say = say
        self._kill = kill
        self._slow = False
        self.link: BrainLink | None = None
        self.wakes = 0
        self.folded = 0
        self.first_wake_ms: float | None = None
        self.loaded = False
        self.scope = AxonScope()
        self.engines: list[EngineFacts] = []
        self._failure = ""
        self._counted = ""

    # -- lives -------------------------------------------------------------------------------------

    def new_link(self, cognet_path: str) -> BrainLink:
        """Another life of the brain begins."""
        self._slow = False
        self.link = BrainLink(
            log=self._setup.log, verbs=self._verbs, welcome=lambda: self._welcome(cognet_path), events=self
        )
        return self.link

    def serve_pages(self, sock: socket.socket) -> None:
        """History for the present life; each page counts as a heartbeat."""
        self._setup.log.serve_pages(sock)

    def heard(self) -> None:
        """A page was served: the brain is alive, though its loop waits. Any thread."""
        if self.link:
            self.link.heard()

    def stream(self, rows: list[Row]) -> None:
        """Entries were admitted."""
        if self.link:
            self.link.stream(rows)

    def retire(self, first_seq: int) -> None:
        """The log's oldest entries were retired."""
        self._tell(Retired(first_seq))

    def scope_changed(self, scope: AxonScope) -> None:
        """What the capsule can execute is this now."""
        self.scope = scope
        self._tell(Scoped(scope))

    def engines_changed(self, engines: list[EngineFacts]) -> None:
        """The roles' facts are these now."""
        self.engines = engines
        self._tell(Engines(engines))

    def _tell(self, message: Retired | Scoped | Engines) -> None:
        if self.link:
            self.link.tell(message)

    def watch(self) -> None:
        """End a brain that says nothing or reads nothing; called several times in each heartbeat."""
        link = self.link
        if link is None:
            return
        if link.left_us is not None:
            if mono_us() - link.left_us > LEAVING_US:
                link.left_us = mono_us()
                self._kill("it closed its link and didn't end")
            return
        if not link.connected:
            return
        link.flush()
        heartbeat_s = self._setup.agent.brain.heartbeat_s
        limit_s = heartbeat_s if link.loaded else max(LOAD_GRACE_S, 5 * heartbeat_s)
        silent_s = (mono_us() - link.heard_us) / 1e6
        if silent_s > limit_s:
            self._kill(
                f"no heartbeat for {silent_s:.1f} s (heartbeat_s = {limit_s:g}): something in it blocks; "
                "await instead (asyncio.sleep for time.sleep, asyncio.to_thread for slow calls)"
            )
            link.close()
        elif not link.loaded and not self._slow and mono_us() - link.began_us > LOAD_GRACE_S * 1e6:
            self._slow = True
            self._say("[brain] is still loading: its imports or boot hooks take long (folding a long log does)")
        elif link.drowning:
            self._kill("it stopped reading its entries")
            link.close()

    async def stop(self, grace_s: float) -> None:
        """Ask it to shut down and wait, bounded, until it did."""
        if self.link is None:
            return
        self.link.stop(grace_s)
        try:
            await asyncio.wait_for(self.link.stopped.wait(), grace_s + 1.0)
        except TimeoutError:
            self._say("[brain] didn't finish its shutdown hooks in time")

    def finish(self) -> None:
        """Counting ends: the state stays what it is now, since the link goes before the figures are reckoned."""
        self._counted = self.state

    @property
    def state(self) -> str:
        """``up``, ``loading``, or why it can't be loaded; of a run that ended, what it was while it was counted."""
        now = "up" if self.link and self.link.loaded and self.link.connected else "loading"
        return self._counted or self._failure or now

    def _told(self, error: str) -> str:
        """What happened, and the line of the cognet's own code that it came from, as one line."""
        what, *places = self._at_home(error).strip().splitlines() or ["without a word"]
        own = [place.strip() for place in places if not place.strip().startswith(("brain/", "abi/", "asyncio/"))]
        return f"{what} ({own[-1]})" if own else what

    def _at_home(self, text: str) -> str:
        """Paths as the person knows them, not as the sandbox shows them."""
        return text.replace(COGNET_INSIDE, str(self._setup.cognet.folder))

    def _welcome(self, cognet_path: str) -> Welcome:
        agent, cognet, log = self._setup.agent, self._setup.cognet, self._setup.log
        return Welcome(
            agent_id=agent.agent.name,
            session_id=self._setup.session.id,
            boot_id=self._setup.boot_id,
            mode=cognet.mode,
            wake_on=list(cognet.wake_on),
            max_ticks_per_wake=cognet.max_ticks_per_wake,
            store=dict(cognet.store),
            wakes=self.wakes,
            last_seq=log.last_seq,
            first_seq=log.first_seq,
            settled_seq=self._setup.settled_seq,
            window_entries=agent.brain.window_entries,
            heartbeat_s=agent.brain.heartbeat_s,
            max_overlap=agent.brain.max_overlap,
            cognet=agent.agent.cognet,
            cognet_path=cognet_path,
            scope=self.scope,
            engines=self.engines,
        )

    # -- what it tells -----------------------------------------------------------------------------

    def brain_loaded(self, message: Loaded) -> None:
        """The boot hooks are done."""
        if not self.loaded:
            self.folded = message.folded
        self._failure = ""
        self.loaded = True
        name = self._setup.agent.agent.cognet
        self._narrator.tell("cognet:load:complete", LoadedFact(name=name, took_us=message.took_us))

    def brain_failed(self, error: AxonError) -> None:
        """The cognet can't be loaded."""
        self._failure = self._at_home(str(error))
        self._say(f"[brain] {self._failure}")
        name = self._setup.agent.agent.cognet
        self._narrator.tell("cognet:load:failed", LoadedFact(name=name, error=self._failure))

    def wake_began(self, message: Admitted) -> None:
        """A wake was admitted."""
        if message.ordinal > self.wakes + MAX_AHEAD:
            raise FrameInvalid(f"the ordinal {message.ordinal} after {self.wakes} wakes")
        if self.first_wake_ms is None:
            self.first_wake_ms = round((mono_us() - self._setup.began_us) / 1000, 1)
        self.wakes = max(self.wakes, message.ordinal)
        self._statistics.wakes.began(message.ordinal, late_us=message.late_us, overlap=message.overlap)
        self._narrator.tell(
            "kernel:wake:admitted",
            WakeAdmitted(ordinal=message.ordinal, late_us=message.late_us, overlap=message.overlap),
            message.wake_id,
        )

    def wake_ended(self, message: Ended) -> None:
        """A wake ended."""
        self._statistics.wakes.ended(message.ordinal, message.outcome)
        if message.error:
            self._say(f"[brain] wake {message.ordinal} failed: {self._told(message.error)}")
        self._narrator.tell(
            "kernel:wake:settled",
            WakeSettled(
                ordinal=message.ordinal,
                outcome=message.outcome,
                ticks=message.ticks,
                took_us=message.took_us,
                error=message.error,
            ),
            message.wake_id,
        )

    def wakes_missed(self, message: Missed) -> None:
        """A clock skipped periods, or an admission had to wait."""
        if message.reason == "clock":
            self._statistics.wakes.skipped(message.count)
        self._narrator.tell("kernel:wake:missed", WakesMissed(count=message.count, reason=message.reason))

    def brain_told(self, event: TelemetryEvent) -> None:
        """Checked telemetry of the cognet; its warnings and errors are also said to the person."""
        self._narrator.pass_on(event)
        if event.type in ("cognet:log:warning", "cognet:log:error"):
            self._say(f"[brain] {self._told(event.data.message)}")

    def brain_refused(self, error: AxonError) -> None:
        """It broke the protocol."""
        self._narrator.tell("kernel:link:refused", Refused(code=error.code, example=error.message[:500]))
        self._kill(error.message)
