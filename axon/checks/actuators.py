"""What each actuator is bound to and may do, what policy makes of it, and what it does in the running kernel."""

from __future__ import annotations

from collections.abc import Iterator

from axon.checks.check import Check, held, warning
from runtime.abi.summary import Summary
from runtime.config.actuators import RULES, Actuator
from runtime.config.agent import AgentConfig
from runtime.policy.policy import Policy


def actuators(agent: AgentConfig, summary: Summary | None) -> Iterator[Check]:
    """One line an actuator."""
    policy = Policy(agent.policy)
    for name, actuator in agent.actuators.items():
        yield _check(name, actuator, denied=_denied(name, actuator, policy), state=_state(name, summary))


def _check(name: str, actuator: Actuator, *, denied: str, state: str) -> Check:
    line = f"actuator {name}"
    detail = f"{in_words(actuator)}{f'; {state}' if state else ''}"
    if denied:
        return warning(line, f"{detail}; {denied}", fix="Change that rule under [policy], or remove the binding.")
    if state == "gone":
        return warning(line, detail, fix="Its driver isn't heard: look at what `axon run` says, or at the device.")
    return held(line, detail)


def in_words(actuator: Actuator) -> str:
    """A binding on one line: ``channel steer: -1 to 1 rad, at most 4/s, safe 0, 500 ms; simulated``."""
    kind = "on or off" if actuator.is_switch else f"{actuator.min:g} to {actuator.max:g}"
    safe = str(actuator.safe).lower() if actuator.is_switch else f"{actuator.safe:g}"
    parts = [f"{kind} {actuator.unit}" if actuator.unit else kind]
    if actuator.max_rate is not None:
        parts.append(f"at most {actuator.max_rate:g}/s")
    return f"{actuator.moved_by}: {', '.join([*parts, f'safe {safe}', f'{actuator.ttl_ms} ms'])}; {actuator.driver}"


def _denied(name: str, actuator: Actuator, policy: Policy) -> str:
    """Why no output ever reaches it; "" where one may. A tool is decided about by its own name."""
    if actuator.tool is not None:
        return "" if policy.permits(actuator.tool) else f"policy denies {actuator.tool}"
    key, rule = policy.rule(f"{RULES}.{name}")
    if rule is None or rule.decision == "allow":
        return ""
    return (
        f"the rule {key} denies it" if rule.decision == "deny" else f"the rule {key} asks a person: outputs can't wait"
    )


def _state(name: str, summary: Summary | None) -> str:
    return summary.actuators.get(name, "") if summary else ""
