"""Durations as people write them: ``20s``, ``1m30s``, ``2h`` or plain seconds."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9}(?:\.\d{1,6})?)s?)?", re.ASCII)
EXPECTED = "a duration such as 20s, 1m30s or 2h"


def parse_duration(text: str) -> float:
    """Seconds, above 0; ``ValueError`` for anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is not {EXPECTED}")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    total_s = 3600 * hours + 60 * minutes + seconds
    if total_s <= 0:
        raise ValueError(f"{text!r} is no time at all; expected {EXPECTED}")
    return total_s
