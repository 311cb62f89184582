"""Faults in the log: what the model reads to correct itself, and what hosts keep from people unless they ask."""

from __future__ import annotations

from runtime.abi.entries import Entry, SystemMessageEntry

FAULT = "format-violation"
"""The type of the ``axon:system:message`` that tells one."""
MAX_FAULT_CHARS = 4000


def is_fault(entry: Entry) -> bool:
    """Whether a host hides this: machinery that a person can't act on."""
    return isinstance(entry, SystemMessageEntry) and entry.data.type == FAULT
