"""The catalogue of the agent's knowledge, as a cognet sees it, and the bounds of one entry."""

from __future__ import annotations

import msgspec

MAX_ENTRY_BYTES = 1_000_000
"""What ``read`` hands over and ``write`` takes at most: an entry is a page, not an archive."""
MAX_NAME_BYTES = 1024
MAX_CATALOGUE_BYTES = 4 * 1024 * 1024
"""The longest answer to ``list``: some 16,000 entries of ordinary length."""


class KnowledgeEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry: its name, what it says of itself ("" when nothing), its bytes on the disk, where it can be opened."""

    name: str
    description: str
    size: int
    path: str
