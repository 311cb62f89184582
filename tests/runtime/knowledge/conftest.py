"""An agent's folder with a store, and what is told of the disk below it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.knowledge.knowledge import Knowledge


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "robot"
    (folder / "knowledge").mkdir(parents=True)
    return folder


@pytest.fixture
def store(agent: Path) -> Path:
    return agent / "knowledge"


@pytest.fixture
def knowledge(agent: Path) -> Knowledge:
    return Knowledge(agent)


@pytest.fixture
def put(agent: Path) -> Callable[..., Path]:
    """A file as a person makes one: ``put("knowledge/a.md", "text")``."""

    def write(name: str, text: str = "x") -> Path:
        path = agent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
