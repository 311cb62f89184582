"""Negative controls: what must be found wrong, or the campaign can't find anything."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from plug.campaign import Campaign, Frozen

MAGIC = b"SQLite format 3\0"
PAGE = 4096
FLIPS = 400


def controls(campaign: Campaign, frozen: Frozen, *, seed: int) -> dict[str, bool]:
    """Which of them failed as they must."""
    return {
        "every flush ignored": _ignored(campaign, frozen),
        "an acknowledgement that nobody gave": _forged(campaign, frozen),
        "bytes of the disk flipped": _flipped(campaign, frozen, random.Random(seed)),
    }


def _ignored(campaign: Campaign, frozen: Frozen) -> bool:
    """A disk that confirms every flush and does none loses what was acknowledged since."""
    for _ in range(5):
        _, _, verdict = campaign.cut_running(frozen, ignored=1.0, at_least_s=2.0)
        if verdict.lost or verdict.corrupt:
            return True
    return False


def _forged(campaign: Campaign, frozen: Frozen) -> bool:
    image, lines, _ = campaign.cut_running(frozen)
    forged = json.dumps({"kind": "said", "seq": 10**9, "what": "nobody said this"})
    return bool(campaign.judge(image, [*lines, forged]).lost)


def _flipped(campaign: Campaign, frozen: Frozen, chance: random.Random) -> bool:
    """Flips in the pages of databases: found and named, or what was acknowledged is missing."""
    image, lines, _ = campaign.cut_running(frozen)
    for place in _database_pages(image, chance):
        image[place] ^= 0xFF
    verdict = campaign.judge(image, lines)
    return bool(verdict.corrupt or verdict.lost)


def _database_pages(image: bytearray, chance: random.Random) -> Sequence[int]:
    """Places within the first pages after each database's header."""
    places, start = [], 0
    while (start := image.find(MAGIC, start)) >= 0:
        places += [start + PAGE + chance.randrange(40 * PAGE) for _ in range(FLIPS)]
        start += PAGE
    return [place for place in places if place < len(image)]
