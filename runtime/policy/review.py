"""What the rules of a policy say and can't mean: a name that isn't there, a bound on nothing, a word too late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capsule.scope import Module
from runtime.policy.binding import Binding
from runtime.policy.policy import Policy


def mistakes(policy: Policy, modules: Sequence[Module], *, block_s: float) -> list[str]:
    """One sentence each; about modules that aren't among ``modules`` nothing is said.

    ``block_s`` is how long a block of code may run, a person's thinking included.
    """
    bounds = [words for module in modules for words in _bounds(policy, module)]
    return [*_names(policy, modules), *bounds, *_late(policy, block_s)]


def _names(policy: Policy, modules: Sequence[Module]) -> Iterator[str]:
    """Rules that name no tool of a module that is there."""
    members = {module.name: [one.name for one in module.members] for module in modules}
    for rule in policy.rules:
        module, _, member = rule.partition(".")
        if module in members and member not in ("*", *members[module]):
            yield f"the rule {rule} names no tool: {module} has {', '.join(members[module])}"


def _bounds(policy: Policy, module: Module) -> Iterator[str]:
    """Bounds on what a tool doesn't take."""
    for member in module.members:
        name = f"{module.name}.{member.name}"
        key, rule = policy.rule(name)
        binding = Binding(member.declaration)
        if rule is None or binding.takes_any_name:
            continue
        for argument in rule.arguments.keys() - binding.names:
            yield f"the rule {key} bounds {argument}, which {name} doesn't take: every call of it is denied"


def _late(policy: Policy, block_s: float) -> Iterator[str]:
    """Rules that give a person more time than the block has."""
    for name, rule in policy.rules.items():
        ask_s = policy.ask_s(rule)
        if rule.decision == "escalate" and ask_s >= block_s and not name.startswith("actuator."):
            words = f"the rule {name} gives a person {ask_s:g} s, but a block ends after {block_s:g} s"
            yield f"{words}: [capsule] timeout_s"
