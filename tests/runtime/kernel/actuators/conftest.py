"""A commander with an actuator that tells its state, at times of the test's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from runtime.abi.actuators import ActuatorState
from runtime.config.actuators import Actuator
from runtime.config.policy import Policy as PolicyTable
from runtime.config.policy import Rule
from runtime.kernel.actuators.commander import Commander
from runtime.policy.policy import Policy

FAST = 7_000_000
"""The actuator's clock is ahead of ours by so much, in milliseconds."""


def actuator(**changes: Any) -> Actuator:
    return Actuator(**({"driver": "mqtt", "channel": "steer", "safe": 0.0, "min": -1.0, "max": 1.0} | changes))


def policy(**rules: Mapping[str, Any]) -> Policy:
    """``policy(**{"actuator.steer": {"decision": "deny"}})``."""
    return Policy(PolicyTable(rules={name: Rule(**rule) for name, rule in rules.items()}))


def state(now_us: int, mode: Any = "safe", **changes: Any) -> ActuatorState:
    """A state that took no time to arrive."""
    return ActuatorState(**({"epoch": "e", "clock_ms": now_us // 1000 + FAST, "mode": mode} | changes))


def commander(rules: Policy | None = None, **changes: Any) -> Commander:
    """One whose actuator is heard at moment 0."""
    made = Commander("steer", actuator(**changes), boot="b", check=(rules or policy()).check)
    made.heard(state(0), 0)
    return made


@pytest.fixture
def steer() -> Commander:
    return commander()
