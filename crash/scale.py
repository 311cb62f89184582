"""Every threshold of the product scaled down, so that a second holds what otherwise takes days."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from runtime.durable.space import Reserve
from runtime.log import log, narration, sealing, segment, storage, writer
from runtime.media import disk

RESERVE_BYTES = 4096


@contextmanager
def scaled(rng: random.Random) -> Iterator[None]:
    """Numbers alone are changed, never what is done; put back at the end."""
    changes: list[tuple[Any, str, Any]] = [
        (storage, "CHECKPOINT_PAGES", rng.choice((12, 24, 60))),
        (storage, "CHECKPOINT_PAGES_AT_MOST", 120),
        (storage, "TRUNCATE_PAGES", rng.choice((16, 40, 8000))),
        (storage, "SWEEP_ROWS", rng.choice((5, 16))),
        (storage, "ROWS_A_STATEMENT", rng.choice((8, 512))),
        (writer, "CHECKPOINT_AGAIN_S", 0.01),
        (writer, "FIRST_PAUSE_S", 0.001),
        (writer, "SWEEP_S", 0.0),
        (disk, "CHECKPOINT_PAGES", 24),
        (narration, "PACK_S", 0.01),
        (sealing, "LOOK_S", 0.005),
        (sealing, "REST", 0.0),
        (sealing, "KEEP_ENTRIES", 4),
        (sealing, "BLOCK_ENTRIES", 16),
        (sealing, "SYNC_BYTES", 1024),
        (segment, "BLOCK_ENTRIES", 16),
        (log, "Reserve", partial(Reserve, size_bytes=RESERVE_BYTES)),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
