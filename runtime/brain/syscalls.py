"""What each verb does, for the one brain it is bound to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from capsule.scope import AxonScope
from runtime.abi.errors import (
    CallInvalid,
    EntryTooLarge,
    KernelStopping,
    StoreKeyUndeclared,
    StoreValueInvalid,
    WakeUnavailable,
)
from runtime.abi.faults import bounded
from runtime.abi.link import Welcome
from runtime.abi.plain import check_plain
from runtime.brain.clock import Clocks
from runtime.brain.connection import Connection
from runtime.brain.engines import handle, has
from runtime.brain.history import Session
from runtime.brain.knowledge import KnowledgeCalls
from runtime.brain.narration import Narration
from runtime.brain.scheduler import Scheduler
from runtime.brain.scope import Scope, current_due_us, need_scope


class Syscalls:
    """Checks where a verb is called from and hands it to the kernel."""

    def __init__(
        self,
        *,
        welcome: Welcome,
        connection: Connection,
        session: Session,
        narration: Narration,
        scheduler: Scheduler,
        clocks: Clocks,
    ) -> None:
        self._welcome = welcome
        self._connection = connection
        self._scheduler = scheduler
        self.session = session
        self.narration = narration
        self.clocks = clocks
        self.scope = welcome.scope
        self.engines = {facts.role: facts for facts in welcome.engines}
        self.knowledge = KnowledgeCalls(self._call)
        self.is_over = False

    async def output(self, type_: str, data: Mapping[str, Any] | msgspec.Struct) -> None:
        """Resolves when the output is durable."""
        if not isinstance(type_, str):
            raise CallInvalid(f"kernel.output takes a type and its data, not {type_!r}")
        await self._call("output", [type_, data])

    async def store_get(self, key: str) -> Any:
        """The value, or None."""
        self._check_key(key)
        return await self._call("store.get", [key])

    async def store_set(self, key: str, value: Any) -> None:
        """Resolves when durable."""
        self._check_key(key)
        try:
            check_plain(value)
        except ValueError as error:
            raise StoreValueInvalid(f"the store can't keep this under {key!r}: {error}", key=key) from error
        try:
            await self._call("store.set", [key, value])
        except EntryTooLarge as error:
            raise StoreValueInvalid(f"{key!r}: {error.message}", key=key) from error

    async def base(self) -> str:
        """The rendered identity."""
        text: str = await self._call("base", [])
        return text

    async def fault(self, *, code: str, message: str, excerpt: str | None) -> None:
        """Resolves when the fault is durable."""
        if not all(isinstance(text, str) for text in (code, message, "" if excerpt is None else excerpt)):
            raise CallInvalid("kernel.fault takes a code, a message and an excerpt as text")
        # Cut here already: a model's endless text needn't cross to the kernel.
        await self._call("fault", [bounded(code), bounded(message), excerpt if excerpt is None else bounded(excerpt)])

    async def wake(self) -> int:
        """The ordinal, once admitted."""
        self._scheduler.check_admits()
        if self._welcome.mode != "continuous":
            raise WakeUnavailable("an invocation cognet is woken by stimuli, not by itself")
        return await self._scheduler.wake(current_due_us.get())

    @property
    def wakes(self) -> int:
        """Admitted so far in this kernel boot."""
        return self._scheduler.wakes

    def settle(self, upto_seq: int) -> None:
        """Record that an invocation wake has answered for everything up to there."""
        future = self._connection.call("settle", [upto_seq], wake_id=None, cursor=None)
        future.add_done_callback(self._settled)

    def _settled(self, future: Any) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None and not self._connection.lost.done():
            self.narration.report(f"the end of a wake couldn't be recorded: {error}")

    def _check_key(self, key: str) -> None:
        if not isinstance(key, str) or key not in self._welcome.store:
            declared = ", ".join(self._welcome.store) or "none"
            raise StoreKeyUndeclared(f"the store has no key {key!r}; declared: {declared}", key=str(key))

    def engine(self, role: str) -> Any:
        """The handle of a role."""
        self.need("engine")
        return handle(role, self)

    def has_engine(self, role: str) -> bool:
        """Whether a role can be asked now."""
        self.need("engine.has")
        return has(role, self)

    def current_scope(self) -> AxonScope:
        """What the capsule can execute."""
        self.need("scope")
        return self.scope

    def need(self, verb: str) -> Scope:
        """Where the verb is called from; raises ``KernelStopping``, ``SyscallOutsideWake``."""
        if self.is_over:
            raise KernelStopping(f"kernel.{verb} was called after the shutdown", verb=verb)
        return need_scope(verb)

    def call(self, verb: str, args: list[Any], *, hear: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        """Ask the kernel from here; raises ``KernelStopping``, ``SyscallOutsideWake``."""
        scope = self.need(verb)
        return self._connection.call(verb, args, wake_id=scope.life.wake_id, cursor=scope.cursor, hear=hear)

    async def _call(self, verb: str, args: list[Any]) -> Any:
        return await self.call(verb, args)
