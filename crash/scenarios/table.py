"""All scenarios, and which share of a campaign each has."""

from __future__ import annotations

from crash.recording import Record
from crash.scenarios.again import recovery
from crash.scenarios.damaged import salvage
from crash.scenarios.entries import entries, media
from crash.scenarios.failing import failing
from crash.scenarios.files import files
from crash.scenarios.months import months

SCENARIOS: dict[str, tuple[Record, float]] = {
    "entries": (entries, 0.26),
    "media": (media, 0.12),
    "months": (months, 0.16),
    "recovery": (recovery, 0.20),
    "salvage": (salvage, 0.08),
    "failing syncs": (failing, 0.10),
    "files": (files, 0.08),
}
