"""The brain's rhythm: how often it is worth thinking is a property of a mind, so it stands in the cognet."""

from __future__ import annotations

from runtime import every, kernel, on

RATE_HZ = 30


@on("boot")
def start_clock() -> None:
    """Wake at fixed deadlines; the first is one period after the last boot hook."""
    every(1 / RATE_HZ, kernel.wake)
