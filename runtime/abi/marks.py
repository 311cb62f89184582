"""The de-duplication marks that ingest keeps and the log stores with the entries."""

from __future__ import annotations

import msgspec


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Up to which counter the stimuli of one source and epoch are in the log; ``retired`` epochs are over.

    ``source_id`` is "" for the source without an id.
    """

    channel: str
    source_id: str
    epoch: str
    high: int
    retired: bool = False
