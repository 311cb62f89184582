"""Whose code runs here: the block, in threads and tasks that it started too."""

from __future__ import annotations

from contextvars import ContextVar

block: ContextVar[str | None] = ContextVar("axon_block", default=None)
"""The block's id; None outside every block."""
