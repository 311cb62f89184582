"""Which profile this machine has: its device tree first, then its processor."""

from __future__ import annotations

import os
from pathlib import Path

from hardware_profiles.profile import Profile, load, names

_COMPATIBLE = ("proc/device-tree/compatible", "sys/firmware/devicetree/base/compatible")
_FALLBACK = "generic-x86_64"


def detect(root: Path = Path("/"), *, machine: str | None = None) -> Profile:
    """The profile of the machine whose ``/proc`` and ``/sys`` lie under ``root``; ``machine`` as ``uname -m`` says.

    A board that nobody has described gets the generic profile of its processor.
    """
    machine = machine or os.uname().machine
    profiles = [load(name) for name in names()]
    for compatible in board_names(root):
        for profile in profiles:
            if compatible in profile.compatible:
                return profile
    for profile in profiles:
        if not profile.compatible and profile.machine == machine:
            return profile
    return load(_FALLBACK)


def board_names(root: Path = Path("/")) -> list[str]:
    """What the device tree calls this board, the most specific name first; empty on a PC."""
    for place in _COMPATIBLE:
        try:
            raw = (root / place).read_bytes()
        except OSError:  # a PC has no device tree, and a container may hide it
            continue
        return [name for name in raw.decode("utf-8", "replace").split("\0") if name]
    return []
