"""What ``axon run`` was asked for, handed from the command to the kernel's process as one JSON argument."""

from __future__ import annotations

import sys

import msgspec

LOCKED = 75
"""How a command's own kernel ends when another kernel holds the agent already."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One start of one agent.

    ``folder`` and ``summary`` are absolute paths; ``for_s`` seconds from when everything is up (None: until told to
    stop); ``session`` an id, ``new``, or None for the last one; ``profile`` None for the one detected; ``status``
    whether the live view runs. ``drivers`` and ``brain`` False leave those out; ``command`` is the pid of the command
    that this kernel was started for, with which it ends (0: it was started for itself); ``engine`` the provider that
    fills every role instead of what ``axon.toml`` says.
    """

    folder: str
    for_s: float | None = None
    summary: str | None = None
    session: str | None = None
    inline: bool = False
    sandbox: bool = True
    volatile_data: bool = False
    profile: str | None = None
    status: bool = True
    drivers: bool = True
    brain: bool = True
    command: int = 0
    engine: str = ""


def kernel_argv(options: RunOptions) -> list[str]:
    """``-P``: a folder named runtime in the working directory must not be taken for the package."""
    return [sys.executable, "-P", "-m", "axon.run", msgspec.json.encode(options).decode()]
