"""The exceptions that a block can meet besides Python's own; they are built-in names there."""

from __future__ import annotations


class PolicyDenied(PermissionError):
    """The policy, a limit or the emergency stop refused the call."""


class ToolFailed(RuntimeError):
    """The tool raised, can't be reached, or its value can't come back."""


class Interrupted(KeyboardInterrupt):
    """The block is over: it timed out or was interrupted.

    Not an ``Exception``, so that nobody catches it by habit; of this kind, because asyncio lets it through everywhere.
    """


for _kind in (PolicyDenied, ToolFailed):
    _kind.__module__ = "builtins"  # where a block finds them, and what a traceback says
