"""Calls that wait for a person's word: asked, answered once, for exactly that call, or denied when the time is up."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from capsule.errors import AxonError
from runtime.abi.clock import wall_ms
from runtime.abi.errors import ApprovalUnknown, PolicyDenied
from runtime.abi.payloads import SystemMessage
from runtime.abi.telemetry import PolicyDecided
from runtime.log.log import Log
from runtime.policy.recording import shown

LETTERS = "bcdfghjkmnpqrstvwxyz"
ID_LETTERS = 7
MAX_PENDING = 32
WORDS = 128
STOPPING = "the kernel is shutting down"
State = Literal["asked", "approved", "denied", "expired", "cancelled"]
_TOLD: dict[State, str] = {
    "asked": "kernel:policy:escalated",
    "approved": "kernel:policy:approved",
    "expired": "kernel:policy:expired",
    "cancelled": "kernel:policy:expired",
}
"""Of a denial tells whoever records the refused call."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One call that waits: ``id`` names the approval, ``block`` the block of code that calls.

    ``asked_ms`` is by the wall clock; ``ask_s`` is how long from then a person may take.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    rule: str
    block: str
    asked_ms: int
    ask_s: float

    @property
    def text(self) -> str:
        """The call on one line."""
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"[:500]


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an approval for those who listen: first ``asked``, then once one of the others, ``by`` whom."""

    state: State
    asked: Asked
    by: str = ""


class Approvals:
    """Everything is called in the loop's thread; ``announce`` hears of every change."""

    def __init__(
        self,
        log: Log,
        *,
        tell: Callable[[str, msgspec.Struct], None],
        say: Callable[[str], None],
        announce: Callable[[Approval], None],
    ) -> None:
        self._log = log
        self._tell = tell
        self._say = say
        self._announce = announce
        self._pending: dict[str, tuple[Asked, asyncio.Future[str]]] = {}

    @property
    def pending(self) -> list[Asked]:
        """What waits now, the oldest first."""
        return [asked for asked, _ in self._pending.values()]

    async def ask(self, name: str, arguments: dict[str, Any], *, rule: str, ask_s: float, block: str) -> str:
        """Who approved it, recorded durably; ``PolicyDenied`` when a person denied it or nobody answered in time.

        Cancelled, the call isn't waited for any more and can't be approved.
        """
        if len(self._pending) >= MAX_PENDING:
            raise PolicyDenied(f"{MAX_PENDING} calls wait for a person already")
        asked = Asked(
            id="".join(secrets.choice(LETTERS) for _ in range(ID_LETTERS)),
            name=name,
            arguments=shown(arguments),
            rule=rule,
            block=block,
            asked_ms=wall_ms(),
            ask_s=ask_s,
        )
        loop = asyncio.get_running_loop()
        word: asyncio.Future[str] = loop.create_future()
        self._pending[asked.id] = (asked, word)
        timer = loop.call_later(ask_s, self._expire, asked.id)
        self._told("asked", asked)
        self._say(f"[policy] {asked.text} waits {ask_s:g} s for a person's word (rule {rule}): {waiting(asked)}")
        try:
            return await word
        except asyncio.CancelledError:
            self._told("cancelled", asked)
            raise
        finally:
            timer.cancel()
            self._pending.pop(asked.id, None)

    async def answer(self, id_: str, *, approve: bool, by: str) -> Asked:
        """A person's word about one call; an approval is durable before the call is made.

        Raises ``ApprovalUnknown`` when nothing waits under that id, and what the log raises when it can't record it:
        then the call is denied.
        """
        by = by[:WORDS]
        asked, word = self._pending.pop(id_, (None, None))
        if asked is None or word is None or word.done():
            raise ApprovalUnknown(f"no call waits for {id_[:WORDS]!r}", id=id_[:WORDS])
        if not approve:
            _deny(word, f"{by} denied it", by=by)
            self._told("denied", asked, by=by)
            return asked
        try:
            await self._record(asked, by)
        except AxonError as error:
            _deny(word, f"{by} approved it, and that couldn't be recorded: {error.message}")
            raise
        except BaseException:
            _deny(word, STOPPING)
            raise
        if word.done():
            raise ApprovalUnknown(
                f"{asked.name} wasn't waited for any more when the approval was recorded", id=asked.id
            )
        word.set_result(by)
        self._told("approved", asked, by=by)
        return asked

    def close(self) -> None:
        """The shutdown has begun: nobody's word counts any more."""
        pending, self._pending = self._pending, {}
        for _, word in pending.values():
            _deny(word, STOPPING)

    def _expire(self, id_: str) -> None:
        asked, word = self._pending.pop(id_, (None, None))
        if asked is not None and word is not None:
            _deny(word, f"nobody answered within {asked.ask_s:g} s")
            self._told("expired", asked)

    async def _record(self, asked: Asked, by: str) -> None:
        facts = {
            "id": asked.id,
            "name": asked.name,
            "rule": asked.rule,
            "arguments": asked.arguments,
            "block": asked.block,
            "by": by,
        }
        message = SystemMessage(type="approval", text=f"{by} approved {asked.text}", facts=facts)
        row = self._log.admit("axon:system:message", message, urgent=True, reserve=True)
        await self._log.durable(row.seq)

    def _told(self, state: State, asked: Asked, *, by: str = "") -> None:
        self._announce(Approval(state=state, asked=asked, by=by))
        if type_ := _TOLD.get(state):
            decided = PolicyDecided(
                name=asked.name,
                rule=asked.rule,
                reason="its block ended" if state == "cancelled" else "",
                arguments=asked.arguments,
                block=asked.block,
                by=by,
                approval=asked.id,
            )
            self._tell(type_, decided)


def waiting(asked: Asked) -> str:
    """The command that answers it, by which the line that asks is known again."""
    return f"axon approve DIR {asked.id} [--deny]"


def _deny(word: asyncio.Future[str], reason: str, *, by: str = "") -> None:
    if not word.done():
        word.set_exception(PolicyDenied(reason, by=by))
