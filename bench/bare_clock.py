"""The floor of a rhythm: a bare ``clock_nanosleep`` loop at 30 Hz; prints how late each turn was, in ms, as JSON.

Run as ``python -m bench.bare_clock SECONDS``.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time

HZ = 30
TIMER_ABSTIME = 1


class Timespec(ctypes.Structure):
    """A ``struct timespec``."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def late_ms(seconds: float) -> list[float]:
    """Sleep to absolute deadlines for so long."""
    sleep = ctypes.CDLL(None, use_errno=True).clock_nanosleep
    late: list[float] = []
    due = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for _ in range(int(seconds * HZ)):
        due += 1_000_000_000 // HZ
        sleep(time.CLOCK_MONOTONIC, TIMER_ABSTIME, ctypes.byref(Timespec(*divmod(due, 1_000_000_000))), None)
        late.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - due) / 1e6)
    return late


if __name__ == "__main__":
    print(json.dumps(late_ms(float(sys.argv[1]))))
