"""What policy refused, written down: an entry each with rule and arguments, as far as a log can bear it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.payloads import SystemMessage
from runtime.abi.telemetry import PolicyDecided
from runtime.log.log import Log
from runtime.policy.recording import Allowance, shown

SUM_US = 10_000_000
"""How often the refusals that got no entry of their own are told in one."""
MAX_NAME = 160
"""Longer than any tool's name."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """One call that wasn't made: which, by which rule, and why; ``by`` where a person refused it."""

    name: str
    arguments: Mapping[str, Any]
    rule: str
    reason: str
    block: str
    by: str = ""

    @property
    def text(self) -> str:
        """What happened, as the agent reads it."""
        rule = f" (rule {self.rule})" if self.rule else ""
        return f"{self.name} was denied: {self.reason}{rule}"


class Refusals:
    """``add`` one; ``flush``, called every now and then, tells how many got no entry."""

    def __init__(
        self, log: Log, *, tell: Callable[[str, msgspec.Struct], None], say: Callable[[str], None], began_us: int
    ) -> None:
        self._log = log
        self._tell = tell
        self._say = say
        self._allowance = Allowance()
        self._flushed_us = began_us

    def add(self, refused: Refused, now_us: int) -> None:
        """Count one, and write it down if the block and the second haven't had enough."""
        if not self._allowance.take(refused.block, refused.name, now_us):
            return
        arguments = shown(refused.arguments)
        decided = PolicyDecided(
            name=refused.name,
            rule=refused.rule,
            reason=refused.reason,
            arguments=arguments,
            block=refused.block,
            by=refused.by,
        )
        self._tell("kernel:policy:denied", decided)
        facts = {
            "name": refused.name,
            "rule": refused.rule,
            "reason": refused.reason,
            "arguments": arguments,
            "block": refused.block,
        }
        self._record(refused.text, facts | ({"by": refused.by} if refused.by else {}))

    def flush(self, now_us: int) -> None:
        """One entry and one event for all that got none, at most every ten seconds."""
        if now_us - self._flushed_us < SUM_US:
            return
        self._flushed_us = now_us
        left_out = self._allowance.left_out()
        if not left_out:
            return
        for name, count in left_out.items():
            self._tell("kernel:policy:denied", PolicyDecided(name=name, count=count, reason="not recorded singly"))
        total = sum(left_out.values())
        names = ", ".join(left_out)
        self._record(f"{total} more calls were denied, of {names}"[:2000], {"left_out": left_out})

    def _record(self, text: str, facts: dict[str, Any]) -> None:
        try:
            self._log.admit("axon:system:message", SystemMessage(type="policy", text=text, facts=facts), reserve=True)
        except AxonError as error:
            self._say(f"[policy] {text} (not recorded: {error.message})")
