"""What a brain may ask of the kernel beyond its log and outputs: one object each, made and joined here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from capsule.scope import AxonScope
from runtime.abi.engines import EngineFacts
from runtime.abi.link import Row
from runtime.config.store import store_type
from runtime.kernel.base import Base, variables
from runtime.kernel.brain_host import BrainHost
from runtime.kernel.brain_link import Verb
from runtime.kernel.brain_sandbox import knowledge_binds
from runtime.kernel.capsule.capsule import Capsule
from runtime.kernel.capsule.incarnation import Shape
from runtime.kernel.engines.engines import Engines
from runtime.kernel.execution.execution import Execution
from runtime.kernel.fault import Faults
from runtime.kernel.knowledge import KnowledgeVerbs
from runtime.kernel.narrator import Narrator
from runtime.kernel.setup import Setup
from runtime.kernel.store import Store
from runtime.kernel.supervisor import Supervisor
from runtime.kernel.tools.announcer import Announcer
from runtime.kernel.tools.approvals import Approval, waiting
from runtime.kernel.tools.tools import Mover, Tools
from runtime.knowledge.knowledge import Knowledge
from runtime.policy.policy import Policy

INTERRUPT = "axon:interrupt"


class Agency:
    """The parts behind the verbs; ``verbs`` is what the brain's link serves."""

    def __init__(
        self,
        setup: Setup,
        *,
        narrator: Narrator,
        supervisor: Supervisor,
        say: Callable[[str], None],
        settled: Callable[[str], None],
        policy: Policy,
        mover: Mover,
    ) -> None:
        self._setup = setup
        self._narrator = narrator
        self._supervisor = supervisor
        self._say = say
        self._settled = settled
        self.store = Store(
            setup.data / "state" / setup.cognet.name,
            declared={key: store_type(text) for key, text in setup.cognet.store.items()},
            session_id=setup.session.id,
            log=setup.log,
        )
        self.knowledge = KnowledgeVerbs(Knowledge(setup.agent.folder), log=setup.log, narrator=narrator, say=say)
        self.base = Base(
            setup.agent.folder,
            variables(setup.agent, cognet=setup.cognet.name, session=setup.session.id),
            say=say,
            settled=settled,
        )
        self.faults = Faults(setup.log)
        self._brain: BrainHost | None = None
        self.engines = Engines(
            setup.roles,
            log=setup.log,
            supervisor=supervisor,
            tell=narrator.tell,
            changed=self._engines_changed,
            cores=setup.engine_cores,
        )

        self.tools = Tools(
            setup.agent.folder / "modules",
            policy=policy,
            log=setup.log,
            supervisor=supervisor,
            tell=narrator.tell,
            say=say,
            changed=self._scope_changed,
            block_s=setup.agent.capsule.timeout_s,
            announce=self._approval_changed,
            mover=mover,
        )
        self.capsule = Capsule(
            Shape(
                sandboxed=setup.sandboxed,
                memory_bytes=setup.agent.capsule.memory,
                binds=knowledge_binds(setup.agent.folder),
            ),
            supervisor=supervisor,
            call_tool=self.tools.call,
            tell=narrator.tell,
        )
        self.execution = Execution(
            self.capsule,
            log=setup.log,
            timeout_s=setup.agent.capsule.timeout_s,
            tell=narrator.tell,
            prepared=self.tools.imported,
        )
        self.announcer = Announcer(agent=setup.agent.agent.name, pending=lambda: self.tools.approvals.pending)

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may call, by the name of the verb."""
        own = (self.store, self.knowledge, self.base, self.faults, self.engines, self.execution)
        return {name: verb for part in own for name, verb in part.verbs.items()}

    @property
    def requests(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        """What a person's command may ask, by the name of the request."""
        return {**self.knowledge.requests, **self.tools.requests, **self.execution.requests}

    def start(self, brain: BrainHost) -> None:
        """Start the processes behind the verbs; on the loop, in the main thread, returns at once."""
        self._brain = brain
        self.knowledge.start()
        self.base.start()
        brain.engines_changed(self.engines.facts)
        self.tools.start()
        self.capsule.start()

    def admitted(self, rows: list[Row]) -> None:
        """Entries were admitted: an interrupt among them acts now."""
        if any(row.type == INTERRUPT for row in rows):
            self.engines.interrupt()
            self.execution.interrupt()

    def interrupt(self) -> None:
        """The shutdown has begun: what runs for a wake ends."""
        self.engines.stop()
        self.execution.stop()
        self.tools.interrupt()

    def _approval_changed(self, approval: Approval) -> None:
        self.announcer.add(approval)
        if approval.state != "asked":
            self._settled(waiting(approval.asked))

    def _scope_changed(self, scope: AxonScope) -> None:
        self.capsule.scope_changed(scope)
        if self._brain:
            self._brain.scope_changed(scope)

    def _engines_changed(self, facts: list[EngineFacts]) -> None:
        if self._brain:
            self._brain.engines_changed(facts)

    async def close(self) -> None:
        """End what is left; the brain is gone."""
        await self.execution.close()
        await self.base.close()
        await self.knowledge.close()
        self.store.close()
        self.tools.close()
