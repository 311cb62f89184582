"""The agent's tool modules: which are there, which failed and why, and rules of policy that can mean nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from axon.checks.check import Check, held, warning
from axon.client import ask
from capsule.errors import AxonError
from runtime.config.agent import AgentConfig
from runtime.tools.loading import module_files

ANSWER_S = 3.0
DENIED = "denied by policy"


def tools(agent: AgentConfig, *, running: bool) -> Iterator[Check]:
    """Of a running kernel what really loaded; else only what lies there, since importing may move something."""
    names = [path.stem for path in module_files(agent.folder / "modules")]
    rules = len(agent.policy.rules)
    if not running:
        detail = f"{', '.join(names)}: imported when the agent runs" if names else "no modules"
        yield held("tools", detail)
        yield held("policy", _rules(rules))
        return
    try:
        found: dict[str, Any] = ask(agent.folder, "tools", timeout_s=ANSWER_S)
    except AxonError as error:
        yield warning("tools", f"the kernel doesn't say: {error.message}", fix="Ask again; it may be starting.")
        return
    yield _loaded(found["scope"])
    yield _meant(found["mistakes"], rules)


def _loaded(scope: dict[str, Any]) -> Check:
    """Modules with their tools, and what isn't there."""
    there = [f"{module['name']} ({', '.join(one['name'] for one in module['members'])})" for module in scope["modules"]]
    denied = [one["name"] for one in scope["unavailable"] if one["reason"] == DENIED]
    failed = [f"{one['name']}: {one['reason']}" for one in scope["unavailable"] if one["reason"] != DENIED]
    parts = ["; ".join(there) or "none can be called", *([f"{DENIED}: {', '.join(denied)}"] if denied else []), *failed]
    if failed:
        return warning("tools", "\n".join(parts), fix="Correct the module and start the agent again.")
    return held("tools", "\n".join(parts) if there or denied else "no modules")


def _meant(mistakes: list[str], rules: int) -> Check:
    if mistakes:
        return warning("policy", "\n".join(mistakes), fix="Correct the rule under [policy] in axon.toml.")
    return held("policy", _rules(rules))


def _rules(count: int) -> str:
    return f"{count} rule{'s' * (count != 1)}; what no rule names is denied"
