"""Which role is filled by what: decided before anything runs, and refused with what is lacking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.abi.errors import EngineModelInvalid, EngineRoleUnbound
from runtime.config.cognet import CognetConfig, EngineRole
from runtime.config.sections import Engine
from runtime.kernel.engines.roles import resolve

ONLY_GENERATES = 'format = 1\n[[rules]]\nreply = "a"\n'


def cognet(**roles: EngineRole) -> CognetConfig:
    return CognetConfig(
        name="c",
        folder=Path(),
        abi="1",
        mode="invocation",
        wake_on=("text",),
        max_ticks_per_wake=1,
        engines=roles,
        store={},
    )


def scripted(**given: Any) -> Engine:
    return Engine(provider="scripted", **{"model": "default", "options": {}} | given)


def test_a_role_is_filled_and_has_its_facts(tmp_path):
    want = EngineRole(type="generate", input=["text"], output=["text"], context=8000, parallel=6)
    (role,) = resolve(cognet(main=want), {"main": scripted(), "spare": scripted()}, tmp_path)
    facts = role.facts
    assert (facts.role, facts.type, facts.input, facts.output) == ("main", "generate", ["text"], ["text"])
    assert (facts.context, facts.slots, facts.available) == (8000, 6, True)


def test_a_required_role_that_nothing_fills_is_refused(tmp_path):
    with pytest.raises(EngineRoleUnbound, match=r"no \[engines\.main\]"):
        resolve(cognet(main=EngineRole(type="generate")), {}, tmp_path)


def test_an_optional_one_is_empty_with_the_reason(tmp_path):
    (role,) = resolve(cognet(ears=EngineRole(type="stream", optional=True)), {}, tmp_path)
    assert not role.facts.available
    assert role.facts.slots == 0
    assert "axon.toml has no [engines.ears]" in role.facts.reason


@pytest.mark.parametrize(
    ("want", "options", "lacking"),
    [
        ({"type": "transform"}, {}, "type 'transform', it has generate"),
        ({"type": "generate", "context": 500}, {"context": 100}, "context of 500 tokens, it has 100"),
        ({"type": "generate", "parallel": 3}, {"slots": 2}, "3 requests at once, it serves 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_lacking(tmp_path, want, options, lacking):
    (tmp_path / "s.toml").write_text(ONLY_GENERATES)
    engines = {"main": scripted(model="s.toml", options=options)}
    with pytest.raises(EngineRoleUnbound, match=lacking):
        resolve(cognet(main=EngineRole(**want)), engines, tmp_path)
    (role,) = resolve(cognet(main=EngineRole(**want, optional=True)), engines, tmp_path)
    assert lacking in role.facts.reason


def test_a_model_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(EngineModelInvalid, match=r"missing\.toml"):
        resolve(cognet(main=EngineRole(type="generate")), {"main": scripted(model="missing.toml")}, tmp_path)


def test_a_command_may_fill_every_role_with_another_provider(tmp_path):
    (role,) = resolve(cognet(main=EngineRole(type="generate")), {}, tmp_path, override="scripted")
    assert role.order is not None
    assert (role.order.provider, role.order.model) == ("scripted", "default")
