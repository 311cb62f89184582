"""Faults in the log: what the model reads to correct itself, and what hosts keep from people unless they ask."""

from __future__ import annotations

from runtime.abi.entries import Entry, SystemMessageEntry

FAULT = "format-violation"
"""The type of the ``axon:system:message`` that tells one."""
MAX_FAULT_CHARS = 4000


def is_fault(entry: Entry) -> bool:
    """Whether a host hides this: machinery that a person can't act on."""
    return isinstance(entry, SystemMessageEntry) and entry.data.type == FAULT


def bounded(text: str) -> str:
    """The text, or its beginning and how much was left out; never longer than ``MAX_FAULT_CHARS``."""
    if len(text) <= MAX_FAULT_CHARS:
        return text
    kept = MAX_FAULT_CHARS - 40
    return f"{text[:kept]}… ({len(text) - kept:,} more characters)"
