"""The controller's rhythm."""

from __future__ import annotations

from runtime import every, kernel, on

RATE_HZ = 20


@on("boot")
def start_clock() -> None:
    """Wake at fixed deadlines; the first is one period after the last boot hook."""
    every(1 / RATE_HZ, kernel.wake)
