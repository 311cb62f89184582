"""An agent's knowledge from outside: read from the disk, changed through the kernel when one runs, else beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axon.client import ask
from axon.person import person
from runtime.abi.errors import AgentNotFound, AgentNotRunning
from runtime.config.agent import FILE
from runtime.knowledge.knowledge import Knowledge
from runtime.knowledge.places import prepare


def library(folder: Path) -> Knowledge:
    """The knowledge of the agent in ``folder``; raises ``AgentNotFound``."""
    if not (folder / FILE).is_file():
        raise AgentNotFound(f"there is no agent in {folder}", folder=str(folder))
    return Knowledge(folder)


def write_entry(folder: Path, name: str, content: bytes) -> bool:
    """Replace or make an entry; whether a kernel traced it."""
    here = library(folder)
    try:
        _ask(folder, "knowledge_write", name=name, content=content)
    except _Alone:
        prepare(folder.resolve())
        here.write(name, content)
        return False
    return True


def remove_entry(folder: Path, name: str) -> tuple[bool, bool]:
    """Remove an entry; whether there was one, and whether a kernel was asked."""
    here = library(folder)
    try:
        return bool(_ask(folder, "knowledge_remove", name=name)["removed"]), True
    except _Alone:
        return here.remove(name), False


class _Alone(Exception):
    """No kernel runs."""


def _ask(folder: Path, verb: str, **args: Any) -> Any:
    """The kernel's answer; one that took the question and gave none may still do it, so that isn't ``_Alone``."""
    try:
        return ask(folder, verb, by=person(), **args)
    except AgentNotRunning as error:
        if "verb" in error.facts:
            raise
        raise _Alone from error
