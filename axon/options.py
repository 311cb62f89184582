"""What ``axon run`` was asked for, handed from the command to the kernel's process as one JSON argument."""

from __future__ import annotations

import msgspec


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One start of one agent.

    ``folder`` and ``summary`` are absolute paths; ``for_s`` seconds from when everything is up (None: until told to
    stop); ``session`` an id, ``new``, or None for the last one; ``profile`` None for the one detected; ``status``
    whether the live view runs.
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
