"""The roles of the agent's cognet: which is filled by what, and what a running kernel says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from axon.checks.check import Check, held, not_held, warning
from axon.client import ask
from axon.shipped import SHIPPED_COGNETS
from capsule.errors import AxonError
from runtime.config.agent import AgentConfig
from runtime.config.cognet import find_cognet, load_cognet
from runtime.kernel.engines.roles import resolve

ANSWER_S = 3.0


def engines(agent: AgentConfig, *, running: bool) -> Iterator[Check]:
    """A line for each role that the cognet declares."""
    try:
        cognet = load_cognet(find_cognet(agent, SHIPPED_COGNETS))
    except AxonError:
        return  # the line about the cognet says why
    now = _now(agent) if running else {}
    for name, want in cognet.engines.items():
        line = f"engine {name}"
        try:
            (role,) = resolve(msgspec.structs.replace(cognet, engines={name: want}), agent.engines, agent.folder)
        except AxonError as error:
            yield not_held(line, error.message, fix=error.hint)
            continue
        if role.order is None or role.offer is None:
            yield held(line, f"empty, and the cognet can do without it: {role.reason}")
        elif (facts := now.get(name)) and not facts["available"]:
            yield warning(line, f"{role.order.provider}: {facts['reason']}", fix="It is started again by itself.")
        else:
            context = f", context {role.offer.context}" if role.offer.context else ""
            detail = f"{want.type} by {role.order.provider}, {role.offer.model}{context}, slots {role.offer.slots}"
            yield held(line, detail, essential=not want.optional)


def _now(agent: AgentConfig) -> dict[str, dict[str, Any]]:
    """What the running kernel knows of each role; nothing when it doesn't say."""
    try:
        return {role["role"]: role for role in ask(agent.folder, "engines", timeout_s=ANSWER_S)}
    except AxonError:
        return {}
