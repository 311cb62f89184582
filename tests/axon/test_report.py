"""Errors as people read them."""

from __future__ import annotations

from axon.report import error_lines
from runtime.abi.errors import AgentNotRunning


def test_a_command_in_a_hint_names_the_agents_folder() -> None:
    assert "`axon run '/my robot'`" in error_lines(AgentNotRunning("no kernel", folder="/my robot"))
    assert "`axon run DIR`" in error_lines(AgentNotRunning("no kernel"))
