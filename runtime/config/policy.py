"""``[policy]``: which tools and actuators may be used, with which arguments, how often, and what a person is asked."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from runtime.config.document import Document, key_text, shown
from runtime.config.lines import Key
from runtime.config.origin import Origin
from runtime.config.sections import Section

Decision = Literal["allow", "deny", "escalate"]
RULE_NAME = re.compile(r"\*|[A-Za-z_][A-Za-z0-9_]*\.(?:\*|[A-Za-z0-9_][A-Za-z0-9._-]{0,63})")
RATE = r"^([1-9][0-9]{0,5})/(s|min|h)\Z"
SECONDS = {"s": 1, "min": 60, "h": 3600}
MAX_RULES = 1000
_Value = str | int | float | bool
_AskS = Annotated[float, Meta(gt=0, le=86_400, description="seconds, above 0 up to 86,400")]
_RULE_EXPECTED = 'a rule by its name in quotes: [policy."module.member"], [policy."module.*"] or [policy."*"]'


class Bound(Section, frozen=True, kw_only=True):
    """What one argument may be; all that is given must hold.

    ``min`` and ``max`` are for numbers, ``max_length`` for text and lists, ``values`` are the only ones allowed,
    ``each`` is what every item of a list must be.
    """

    min: Annotated[int | float, Meta(description="a number")] | None = None
    max: Annotated[int | float, Meta(description="a number")] | None = None
    values: Annotated[list[_Value], Meta(min_length=1, max_length=1000, description="a list of values")] | None = None
    max_length: Annotated[int, Meta(ge=0, le=10**9, description="a whole number of characters or items")] | None = None
    each: Bound | None = None


class Rule(Section, frozen=True, kw_only=True):
    """``[policy."module.member"]``: one decision, and the bounds and the rate that it holds within."""

    decision: Decision
    arguments: dict[str, Bound] = msgspec.field(default_factory=dict)
    rate: Annotated[str, Meta(pattern=RATE, description='a rate such as "5/s", "30/min" or "100/h"')] | None = None
    burst: Annotated[int, Meta(ge=1, le=1_000_000, description="a whole number from 1: calls at once")] | None = None
    ask_s: _AskS | None = None

    @property
    def calls(self) -> tuple[int, int] | None:
        """The rate as calls in so many seconds; None without one."""
        found = re.match(RATE, self.rate or "")
        return (int(found[1]), SECONDS[found[2]]) if found else None


class Policy(Section, frozen=True, kw_only=True):
    """``[policy]``: the rules by their names. What no rule names is denied."""

    ask_s: _AskS = 30.0
    rules: dict[str, Rule] = msgspec.field(default_factory=dict)


def load_policy(document: Document, found: dict[str, Origin]) -> Policy:
    """The table of ``axon.toml`` with all its rules; adds to ``found`` where each came from."""
    given = document.table(("policy",), document.data.get("policy", {}))
    own = {"ask_s": given["ask_s"]} if "ask_s" in given else {}
    policy = document.convert(("policy",), own, Policy)
    rules = {name: _rule(document, name, raw) for name, raw in given.items() if name != "ask_s"}
    if len(rules) > MAX_RULES:
        raise document.invalid(("policy",), f"at most {MAX_RULES} rules", got=str(len(rules)))
    source = f"{document.path.name}:{document.line(('policy', 'ask_s'))}" if own else "default"
    found["policy.ask_s"] = Origin(value=policy.ask_s, source=source)
    for name, rule in rules.items():
        key: Key = ("policy", name)
        found[key_text(key)] = Origin(value=in_words(rule), source=f"{document.path.name}:{document.line(key)}")
    return msgspec.structs.replace(policy, rules=rules)


def _rule(document: Document, name: str, raw: object) -> Rule:
    """One rule; the checks are for what would make it mean less, or something else, than its owner believes."""
    key: Key = ("policy", name)
    if not RULE_NAME.fullmatch(name):
        hint = 'A name with a dot needs quotes: [policy."arm.move"], not [policy.arm.move].'
        raise document.invalid(key, _RULE_EXPECTED, got=shown(name), hint=hint)
    table = dict(document.table(key, raw))
    bounds = document.table((*key, "arguments"), table.pop("arguments", {}))
    rule = document.convert(key, table, Rule)
    if rule.decision == "deny" and (extra := (set(table) | ({"arguments"} if bounds else set())) - {"decision"}):
        raise document.invalid((*key, min(extra)), "no more than decision in a rule that denies")
    if rule.ask_s is not None and rule.decision != "escalate":
        raise document.invalid((*key, "ask_s"), 'it only where decision = "escalate"')
    if rule.burst is not None and rule.rate is None:
        raise document.invalid((*key, "burst"), "it only beside a rate")
    return msgspec.structs.replace(
        rule,
        arguments={
            argument: _bound(document, (*key, "arguments", argument), bound) for argument, bound in bounds.items()
        },
    )


def _bound(document: Document, key: Key, raw: object) -> Bound:
    """What one argument may be; ``ConfigInvalid`` for a bound that nothing can meet, or anything."""
    argument = key[3]
    if not isinstance(argument, str) or not argument.isidentifier():
        raise document.invalid(key, "the name of a parameter", got=shown(argument))
    bound = document.convert(key, document.table(key, raw), Bound)
    _check_bound(document, key, bound)
    return bound


def _check_bound(document: Document, key: Key, bound: Bound) -> None:
    ends = [end for end in (bound.min, bound.max) if end is not None]
    of_length = bound.max_length is not None or bound.each is not None
    if not ends and not of_length and bound.values is None:
        raise document.invalid(key, "one of min, max, values, max_length, each", got="an empty bound")
    if ends and of_length:
        raise document.invalid(key, "min and max, which are for numbers, or max_length and each, which are for others")
    if len(ends) == 2 and ends[0] > ends[1]:
        raise document.invalid(key, "a min that isn't above max", got=f"{ends[0]} and {ends[1]}")
    if bound.each is not None:
        _check_bound(document, (*key, "each"), bound.each)


def in_words(rule: Rule) -> str:
    """A rule on one line, for people."""
    parts = [rule.decision, *(f"{name} {bound_in_words(bound)}" for name, bound in rule.arguments.items())]
    if rule.rate:
        parts.append(f"at most {rule.rate}" + (f", {rule.burst} at once" if rule.burst else ""))
    if rule.ask_s is not None:
        parts.append(f"asks for {rule.ask_s:g} s")
    return "; ".join(parts)


def bound_in_words(bound: Bound) -> str:
    """What an argument may be, such as ``from -1 to 1``."""
    parts: list[str] = []
    if bound.min is not None and bound.max is not None:
        parts.append(f"from {bound.min} to {bound.max}")
    elif bound.min is not None:
        parts.append(f"at least {bound.min}")
    elif bound.max is not None:
        parts.append(f"at most {bound.max}")
    if bound.values is not None:
        parts.append("one of " + ", ".join(map(_quoted, bound.values)))
    if bound.max_length is not None:
        parts.append(f"of at most {bound.max_length} characters or items")
    if bound.each is not None:
        parts.append(f"each {bound_in_words(bound.each)}")
    return ", ".join(parts)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
