"""A tool's call from a block of code: policy first, then a person where policy asks one, then the tools host."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from capsule.errors import AxonError
from capsule.protocol import ToolCall
from capsule.scope import AxonScope, Member, Module, Unavailable
from runtime.abi.clock import mono_us
from runtime.abi.errors import KernelStopping, PolicyDenied, ToolFailed, ToolUnavailable
from runtime.kernel.supervisor import Supervisor
from runtime.kernel.tools.approvals import Approval, Approvals, Asked
from runtime.kernel.tools.host import Patience, ToolsHost
from runtime.kernel.tools.refusals import MAX_NAME, Refusals, Refused
from runtime.log.log import Log
from runtime.policy.binding import Binding
from runtime.policy.policy import Policy, Verdict
from runtime.policy.review import mistakes

FLUSH_S = 1.0
IMPORT_S = 30.0
DENIED = "denied by policy"


class Mover(Protocol):
    """What stands between a tool and the actuators that it moves."""

    def permits(self, tool: str, arguments: Mapping[str, Any]) -> AxonError | None:
        """Why the call may not be made now; None where it may."""

    def called(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """The call is about to be made; raises what it isn't made for."""


class _Known:
    """A tool as it was declared."""

    def __init__(self, member: Member) -> None:
        self.is_async = member.is_async
        self.binding = Binding(member.declaration)


class Tools:
    """``call`` serves a block's calls; ``scope`` is what a block can call now, and ``changed`` hears of another.

    ``block_s`` is how long a block may run.
    """

    def __init__(
        self,
        folder: Path,
        *,
        policy: Policy,
        log: Log,
        supervisor: Supervisor,
        tell: Callable[[str, msgspec.Struct], None],
        say: Callable[[str], None],
        changed: Callable[[AxonScope], None],
        block_s: float,
        announce: Callable[[Approval], None] = lambda _: None,
        mover: Mover | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._policy = policy
        self._mover = mover
        self._say = say
        self._changed = changed
        self._block_s = block_s
        self._known: dict[tuple[str, str], _Known] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self._host = ToolsHost(folder, supervisor=supervisor, tell=tell, changed=self._host_changed, patience=patience)
        self._refusals = Refusals(log, tell=tell, say=say, began_us=mono_us())
        self.approvals = Approvals(log, tell=tell, say=say, announce=announce)
        self.scope = self._permitted()

    def start(self) -> None:
        """Start the tools host, where there are modules; on the loop, in the main thread, returns at once."""
        self._host.start()
        self._changed(self.scope)
        self._flush()

    def interrupt(self) -> None:
        """The shutdown has begun: no call begins, nobody is asked."""
        self._stopping = True
        self._host.imported.set()  # nobody waits for them any more
        self.approvals.close()

    def close(self) -> None:
        """The end; the supervisor ends the host."""
        self._host.close()
        if self._timer:
            self._timer.cancel()

    # -- calls -------------------------------------------------------------------------------------

    async def call(self, call: ToolCall) -> Any:
        """What the tool returned.

        Raises ``PolicyDenied``, ``ToolUnavailable`` and ``ToolFailed``. Cancelled, it asks nobody any more and
        abandons what it has begun.
        """
        name = f"{call.module}.{call.member}"[:MAX_NAME]
        if self._stopping:
            raise KernelStopping(f"{name} was called after the shutdown had begun")
        known = self._look_up(name, call)
        arguments = self._bound(name, call, known)
        verdict = self._policy.check(name, arguments, mono_us())
        if verdict.decision == "deny":
            raise self._denied(name, arguments, verdict=verdict, block=call.block)
        if verdict.decision == "escalate":
            await self._ask(name, arguments, verdict=verdict, block=call.block)
            known = self._look_up(name, call)  # the host may have ended meanwhile
        if self._mover is not None:
            if refusal := self._mover.permits(name, arguments):
                raise refusal
            self._mover.called(name, arguments)
        return await self._host.call(call, is_async=known.is_async)

    def _look_up(self, name: str, call: ToolCall) -> _Known:
        """The tool; where there is none and policy would refuse it anyway, that is what is said and recorded."""
        if known := self._known.get((call.module, call.member)):
            return known
        if not self._policy.permits(name):
            arguments = {**{str(number): value for number, value in enumerate(call.args)}, **call.kwargs}
            raise self._denied(name, arguments, verdict=self._policy.check(name, {}, mono_us()), block=call.block)
        if any(module.name == call.module for module in self._host.modules):
            raise ToolUnavailable(f"{call.module} has no tool {call.member[:MAX_NAME]}")
        raise ToolUnavailable(f"{call.module[:MAX_NAME]}: {self._host.reason(call.module)}")

    def _bound(self, name: str, call: ToolCall, known: _Known) -> dict[str, Any]:
        """The arguments by name. What doesn't fit is the call's own mistake, unless no call would be allowed."""
        try:
            return known.binding.bind(call.args, call.kwargs)
        except TypeError as error:
            if self._policy.permits(name):
                raise ToolFailed(f"TypeError: {name}: {error}") from error
            return {}

    def _denied(self, name: str, arguments: dict[str, Any], *, verdict: Verdict, block: str) -> PolicyDenied:
        """The refusal, recorded, for the block to meet."""
        refused = Refused(name=name, arguments=arguments, rule=verdict.rule, reason=verdict.reason, block=block)
        self._refusals.add(refused, mono_us())
        return PolicyDenied(refused.text, name=name, rule=verdict.rule, reason=verdict.reason)

    async def _ask(self, name: str, arguments: dict[str, Any], *, verdict: Verdict, block: str) -> None:
        """Return when a person has approved this call; else raise the refusal, recorded."""
        try:
            await self.approvals.ask(name, arguments, rule=verdict.rule, ask_s=verdict.ask_s, block=block)
        except PolicyDenied as error:
            refused = Refused(
                name=name,
                arguments=arguments,
                rule=verdict.rule,
                reason=error.message,
                block=block,
                by=str(error.facts.get("by", "")),
            )
            self._refusals.add(refused, mono_us())
            raise PolicyDenied(refused.text, name=name, rule=verdict.rule, reason=error.message) from error

    async def imported(self) -> None:
        """Return when the modules were imported for the first time, or after half a minute all the same.

        What runs before finds them unavailable, with the reason.
        """
        if self._host.imported.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(IMPORT_S):
                await self._host.imported.wait()

    # -- what a person asks ------------------------------------------------------------------------

    @property
    def requests(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        """What the control socket serves, by name."""
        return {"tools": self._tools, "approvals": self._approvals, "approve": self._approve}

    async def _tools(self) -> dict[str, Any]:
        """What a block can call, what it can't and why, and what the rules get wrong."""
        return {"scope": self.scope, "mistakes": self.mistakes}

    async def _approvals(self) -> list[Asked]:
        """The calls that wait for a person, the oldest first."""
        return self.approvals.pending

    async def _approve(self, id: str, deny: bool = False, by: str = "person") -> Asked:  # noqa: A002, FBT001, FBT002 - as the request names them
        """A person's word about one of them."""
        return await self.approvals.answer(id, approve=not deny, by=by)

    # -- what there is -----------------------------------------------------------------------------

    @property
    def mistakes(self) -> list[str]:
        """What the rules say about tools that they can't mean, one sentence each."""
        return mistakes(self._policy, self._host.modules, block_s=self._block_s)

    def _host_changed(self) -> None:
        """The host is ready, or gone."""
        self._known = {
            (module.name, member.name): _Known(member) for module in self._host.modules for member in module.members
        }
        self.scope = self._permitted()
        if self._host.is_ready:
            self._say_what_is_wrong()
        self._changed(self.scope)

    def _say_what_is_wrong(self) -> None:
        for one in self._host.unavailable:
            self._say(f"[tools] {one.name}: {one.reason}")
        for words in self.mistakes:
            self._say(f"[policy] {words}")

    def _permitted(self) -> AxonScope:
        """What the host offers, without what no call of which is ever allowed."""
        modules: list[Module] = []
        unavailable = list(self._host.unavailable)
        for module in self._host.modules:
            permitted = [one for one in module.members if self._policy.permits(f"{module.name}.{one.name}")]
            denied = [one for one in module.members if one not in permitted]
            unavailable += [Unavailable(name=f"{module.name}.{one.name}", reason=DENIED) for one in denied]
            if permitted:
                modules.append(msgspec.structs.replace(module, members=permitted))
        return AxonScope(modules=modules, unavailable=unavailable)

    def _flush(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)
        self._refusals.flush(mono_us())
