"""The machine: Python, the hardware profile, and whether memory limits can be set."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from axon.checks.check import Check, held, not_held, warning
from hardware_profiles.profile import Profile

PYTHON = ((3, 11), (3, 13))
_CONTROLLERS = "sys/fs/cgroup/cgroup.controllers"


def machine(profile: Profile, *, root: Path = Path("/")) -> Iterator[Check]:
    """Everything about the machine itself."""
    yield python(sys.version_info[:2])
    yield held("profile", f"{profile.name}: {profile.title}")
    yield memory_limits(root)


def python(version: tuple[int, int]) -> Check:
    """The releases of Python that this one is tested on."""
    text = ".".join(map(str, version))
    low, high = (".".join(map(str, bound)) for bound in PYTHON)
    if PYTHON[0] <= version <= PYTHON[1]:
        return held("python", text, essential=True)
    return not_held("python", text, fix=f"Use Python {low} to {high}.")


def memory_limits(root: Path) -> Check:
    """Raspberry Pi OS starts with the memory controller off."""
    try:
        controllers = (root / _CONTROLLERS).read_text().split()
    except OSError:
        controllers = []
    if "memory" in controllers:
        return held("memory limits", "cgroup v2 with the memory controller")
    fix = "On Raspberry Pi OS add `cgroup_enable=memory` to /boot/firmware/cmdline.txt and reboot."
    return warning("memory limits", "no cgroup memory controller: a child is bounded by rlimits alone", fix=fix)
