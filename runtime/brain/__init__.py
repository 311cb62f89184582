"""The brain: one process that loads one cognet, holds the live projection, and runs its wakes."""
