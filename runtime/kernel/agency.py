"""What a brain may ask of the kernel beyond its log and outputs: one object each, made and joined here."""

from __future__ import annotations

from collections.abc import Callable

from runtime.abi.engines import EngineFacts
from runtime.abi.link import Row
from runtime.config.store import store_type
from runtime.kernel.brain_host import BrainHost
from runtime.kernel.brain_link import Verb
from runtime.kernel.engines.engines import Engines
from runtime.kernel.narrator import Narrator
from runtime.kernel.setup import Setup
from runtime.kernel.store import Store
from runtime.kernel.supervisor import Supervisor

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
    ) -> None:
        self._setup = setup
        self._narrator = narrator
        self._supervisor = supervisor
        self._say = say
        self.store = Store(
            setup.data / "state" / setup.cognet.name,
            declared={key: store_type(text) for key, text in setup.cognet.store.items()},
            session_id=setup.session.id,
            log=setup.log,
        )
        self._brain: BrainHost | None = None
        self.engines = Engines(
            setup.roles,
            log=setup.log,
            supervisor=supervisor,
            tell=narrator.tell,
            changed=self._engines_changed,
            cores=setup.engine_cores,
        )

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may call, by the name of the verb."""
        return {**self.store.verbs, **self.engines.verbs}

    def start(self, brain: BrainHost) -> None:
        """Start the processes behind the verbs; on the loop, in the main thread, returns at once."""
        self._brain = brain
        brain.engines_changed(self.engines.facts)

    def admitted(self, rows: list[Row]) -> None:
        """Entries were admitted: an interrupt among them acts now."""
        if any(row.type == INTERRUPT for row in rows):
            self.engines.interrupt()

    def interrupt(self) -> None:
        """The shutdown has begun: what runs for a wake ends."""
        self.engines.stop()

    def _engines_changed(self, facts: list[EngineFacts]) -> None:
        if self._brain:
            self._brain.engines_changed(facts)

    async def close(self) -> None:
        """End what is left; the brain is gone."""
        self.store.close()
