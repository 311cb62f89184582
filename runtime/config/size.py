"""Sizes as people write them: ``"2 GB"``, ``"256 MiB"`` or a plain number of bytes."""

from __future__ import annotations

import re

_UNITS = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]*)", re.ASCII)
EXPECTED = 'a size such as "2 GB", "256 MiB" or a number of bytes'


def parse_size(text: str) -> int:
    """Bytes of ``"2 GB"`` (decimal) or ``"2 GiB"`` (binary); ``ValueError`` for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is not {EXPECTED}")
    return int(float(match[1]) * _UNITS[match[2]])


def format_size(size_bytes: float) -> str:
    """The same for people: three digits and a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.4g} TB"
