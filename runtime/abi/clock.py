"""The clocks: monotonic microseconds for control and order within a boot, wall milliseconds as an annotation."""

from __future__ import annotations

import time


def mono_us() -> int:
    """Microseconds of CLOCK_MONOTONIC: comparable between processes of one boot of the machine."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def wall_ms() -> int:
    """Milliseconds since 1970 by the wall clock, which may jump; never an order."""
    return time.time_ns() // 1_000_000
