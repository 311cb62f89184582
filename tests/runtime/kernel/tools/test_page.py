"""The examples of docs/tools-and-policy.md really run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runtime.abi.errors import PolicyDenied, ToolFailed

from .conftest import World

PAGE = (Path(__file__).parents[4] / "docs" / "tools-and-policy.md").read_text("utf-8")


def block(kind: str, beginning: str) -> str:
    """The code block of that language that begins so."""
    return next(code for code in re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) if code.startswith(beginning))


async def test_the_lamp_is_offered_and_held_within_its_rules(world: World) -> None:
    world.module("lamp", block("python", '"""The lamp'))
    tools = await world.started(block("toml", "[policy]"))
    (module,) = tools.scope.modules
    assert (module.name, module.doc) == ("lamp", "The lamp above the workbench.")
    assert [(one.declaration, one.is_async) for one in module.members] == [
        ("def dim(level: float, *, slowly: bool = False) -> float", False),
        ("async def blink(times: int = 3) -> None", True),
    ]
    assert await world.call("lamp.dim", 0.4, slowly=True) == 0.4
    assert await world.call("lamp.blink") is None
    with pytest.raises(PolicyDenied, match=r"level = 0\.9 isn't from 0 to 0\.8"):
        await world.call("lamp.dim", 0.9)
    with pytest.raises(ToolFailed, match="TypeError"):
        await world.call("lamp.dim")
