"""Every test that docs/actuators.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "actuators.md").read_text())


def test_it_names_some() -> None:
    assert len(NAMED) > 5


@pytest.mark.parametrize(("file", "name"), NAMED, ids=str)
def test_what_is_named_is_there(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
