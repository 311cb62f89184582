"""``[actuators.<name>]``: what an output channel or a tool moves, within which limits, and what is safe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from runtime.config.document import Document, shown
from runtime.config.lines import Key
from runtime.config.origin import Origin, origins
from runtime.config.policy import Policy
from runtime.config.sections import Name, Section

MAX_ACTUATORS = 64
RULES = "actuator"
"""Rules of ``[policy]`` about actuators are named ``actuator.<name>``."""
_TOOL = r"^[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*\Z"
_Number = Annotated[float, Meta(ge=-1e15, le=1e15, description="a number")]
_OF_A_NUMBER = ("min", "max", "max_rate")


class Actuator(Section, frozen=True, kw_only=True):
    """One actuator. The kind of ``safe`` is the kind of its values: a number with a range, or a switch.

    ``max_rate`` is in units a second, ``ttl_ms`` how long a value holds; ``argument`` is the tool's that moves it.
    """

    driver: Annotated[
        Literal["simulated", "mqtt"],
        Meta(description='"simulated", or "mqtt" for a device that speaks the topics of docs/actuators.md itself'),
    ]
    channel: Name | None = None
    tool: Annotated[str, Meta(pattern=_TOOL, description='a tool as "module.member"')] | None = None
    argument: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}\Z", description="the name of a parameter")] | (
        None
    ) = None
    safe: Annotated[bool | _Number, Meta(description="the value of the safe action: a number, or true or false")]
    min: _Number | None = None
    max: _Number | None = None
    max_rate: Annotated[float, Meta(gt=0, le=1e15, description="a number above 0: units a second")] | None = None
    unit: Annotated[str, Meta(min_length=1, max_length=64, description="a unit, as text")] | None = None
    ttl_ms: Annotated[int, Meta(ge=20, le=60_000, description="whole milliseconds from 20 to 60,000")] = 500
    trace: Annotated[str, Meta(min_length=1, max_length=1024, description="the path of a file")] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether its values are true and false."""
        return isinstance(self.safe, bool)

    @property
    def moved_by(self) -> str:
        """What moves it, in words."""
        return f"channel {self.channel}" if self.tool is None else f"tool {self.tool}, {self.argument}"


def load_actuators(document: Document, found: dict[str, Origin], *, folder: Path, held_ms: int) -> dict[str, Actuator]:
    """Every table, by its name; adds to ``found`` where each value came from.

    ``trace`` begins at ``folder``; ``held_ms`` is how long a commit may be held, which a value has to outlive.
    """
    tables = document.table(("actuators",), document.data.get("actuators", {}))
    if len(tables) > MAX_ACTUATORS:
        raise document.invalid(("actuators",), f"up to {MAX_ACTUATORS} tables [actuators.<name>]", got=str(len(tables)))
    actuators: dict[str, Actuator] = {}
    for name, raw in tables.items():
        key: Key = ("actuators", name)
        given = document.table(key, raw)
        _check_name(document, key, known=actuators)
        actuator = _load(document, key, given)
        if actuator.ttl_ms <= held_ms:
            expected = f"more than log.commit_interval_ms, {held_ms}: a value would be too old before it is durable"
            raise document.invalid((*key, "ttl_ms"), expected, got=shown(actuator.ttl_ms))
        if actuator.trace is not None:
            actuator = msgspec.structs.replace(actuator, trace=str(folder / actuator.trace))
        actuators[name] = actuator
        found |= origins(document, key, section=actuator, given=given, rest="default")
    return actuators


def check_rules(document: Document, actuators: dict[str, Actuator], policy: Policy) -> None:
    """Refuse a rule ``actuator.<name>`` that nothing would ever ask: its owner would believe that it holds."""
    for rule_name, rule in policy.rules.items():
        kind, _, name = rule_name.partition(".")
        if kind != RULES or name == "*":
            continue
        key: Key = ("policy", rule_name)
        if name not in actuators:
            raise document.invalid(key, "the name of an actuator: [actuators.<name>]", got=shown(name))
        if tool := actuators[name].tool:
            raise document.invalid(key, f'[policy."{tool}"]: a tool passes policy by its own name', got=shown(name))
        if rule.decision == "escalate":
            raise document.invalid((*key, "decision"), '"allow" or "deny": an output can\'t wait for a person')


def _check_name(document: Document, key: Key, *, known: dict[str, Actuator]) -> None:
    """A name that is part of a topic, and that nobody takes for another's."""
    document.convert(key, key[1], Name)
    twins = [name for name in known if name.lower() == str(key[1]).lower()]
    if twins:
        raise document.invalid(key, "a name that differs from the others by more than its capitals", got=shown(key[1]))


def _load(document: Document, key: Key, given: dict[str, Any]) -> Actuator:
    actuator = document.convert(key, given, Actuator)
    if (actuator.channel is None) == (actuator.tool is None):
        got = "neither" if actuator.channel is None else "both"
        raise document.invalid(key, "either channel or tool: what moves it", got=got)
    if actuator.tool is not None and actuator.argument is None:
        raise document.invalid((*key, "argument"), "the parameter of the tool that has the value", got="nothing")
    if actuator.tool is None and actuator.argument is not None:
        raise document.invalid((*key, "argument"), "it only beside tool")
    if actuator.tool is not None and actuator.max_rate is not None:
        raise document.invalid((*key, "max_rate"), "it only beside channel: a call is one step, not a movement")
    if actuator.trace is not None and actuator.driver != "simulated":
        raise document.invalid((*key, "trace"), 'it only where driver = "simulated"')
    _check_range(document, key, actuator)
    return actuator


def _check_range(document: Document, key: Key, actuator: Actuator) -> None:
    """A number has both limits, its safe value between them; a switch has none."""
    if actuator.is_switch:
        for name in _OF_A_NUMBER:
            if getattr(actuator, name) is not None:
                raise document.invalid((*key, name), "it only where safe is a number")
        return
    if actuator.min is None or actuator.max is None:
        name = "min" if actuator.min is None else "max"
        raise document.invalid((*key, name), "both min and max: nothing outside ever reaches it", got="nothing")
    if actuator.min >= actuator.max:
        raise document.invalid((*key, "max"), "more than min", got=shown(actuator.max))
    if not actuator.min <= actuator.safe <= actuator.max:
        raise document.invalid((*key, "safe"), "a value from min to max", got=shown(actuator.safe))
