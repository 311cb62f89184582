"""The policy of one agent: whether a call may be made, now, with these arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from runtime.config.policy import Decision, Rule
from runtime.config.policy import Policy as PolicyTable
from runtime.policy.bounds import violation
from runtime.policy.rate import Rate

NO_RULE = "no rule names it"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a call: the ``rule`` that decided ("" where none names it), and why it is refused or asked for.

    ``ask_s`` is how long a person may take to answer, where the decision is ``escalate``.
    """

    decision: Decision
    rule: str = ""
    reason: str = ""
    ask_s: float = 0.0


class Policy:
    """Decides by the most specific rule alone: ``module.member``, else ``module.*``, else ``*``.

    A rule with a rate counts every call that it would let pass or ask for, of whichever member.
    """

    def __init__(self, table: PolicyTable) -> None:
        self._table = table
        self._rates: dict[str, Rate] = {}
        for name, rule in table.rules.items():
            if calls := rule.calls:
                self._rates[name] = Rate(calls[0], per_s=calls[1], burst=rule.burst)

    def check(self, name: str, arguments: Mapping[str, Any], now_us: int) -> Verdict:
        """Decide about one call, and count it.

        ``name`` is ``module.member``; ``arguments`` are by the names of the parameters, the defaults included as far
        as they are known; ``now_us`` is the monotonic clock. A bound for an argument that isn't there denies.
        """
        key, rule = self.rule(name)
        if rule is None:
            return Verdict(decision="deny", reason=NO_RULE)
        if rule.decision == "deny":
            return Verdict(decision="deny", rule=key, reason="the rule denies it")
        for argument, bound in rule.arguments.items():
            if argument not in arguments:
                reason = f"{argument} is bounded and isn't given"
                return Verdict(decision="deny", rule=key, reason=reason)
            if words := violation(bound, arguments[argument]):
                return Verdict(decision="deny", rule=key, reason=f"{argument} = {words}")
        if key in self._rates and not self._rates[key].take(now_us):
            return Verdict(decision="deny", rule=key, reason=f"more than {rule.rate}")
        if rule.decision == "escalate":
            return Verdict(decision="escalate", rule=key, reason="a person decides", ask_s=self.ask_s(rule))
        return Verdict(decision="allow", rule=key)

    @property
    def rules(self) -> Mapping[str, Rule]:
        """The rules by their names, in the order of the file."""
        return self._table.rules

    def ask_s(self, rule: Rule) -> float:
        """How long a person may take, where the rule escalates."""
        return self._table.ask_s if rule.ask_s is None else rule.ask_s

    def rule(self, name: str) -> tuple[str, Rule | None]:
        """The rule that decides about ``module.member``, with its own name; None when it is denied for want of one."""
        module = name.partition(".")[0]
        for key in (name, f"{module}.*", "*"):
            if rule := self._table.rules.get(key):
                return key, rule
        return "", None

    def permits(self, name: str) -> bool:
        """Whether any call of it could pass, with or without a person's word."""
        _, rule = self.rule(name)
        return rule is not None and rule.decision != "deny"
