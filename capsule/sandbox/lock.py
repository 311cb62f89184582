"""The lock: what a guest does to itself before it runs anything it doesn't trust."""

from __future__ import annotations

import os
import sys

import msgspec

from capsule.sandbox.limits import Limits
from capsule.sandbox.seccomp import install

LIMITS_VARIABLE = "AXON_LIMITS"


def lock_down() -> bool:
    """Apply the limits and the system-call filter to the whole process, for good.

    False, and nothing done, where the process was started without a sandbox. Import what forks or opens
    sockets before; afterwards there are no new processes, programs or connections, only threads and the
    descriptors inherited. Raises ``SandboxUnavailable`` where the kernel refuses.
    """
    limits = os.environ.pop(LIMITS_VARIABLE, None)
    if limits is None:
        return False
    msgspec.json.decode(limits, type=Limits).apply()
    _first_to_die()
    install()
    return True


def _first_to_die() -> None:
    """As the stage does for root: what counts against no limit, such as shared memory, must not cost the kernel."""
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


if __name__ == "__main__":
    sys.exit(0 if lock_down() else "not in a sandbox")
