"""How commands write: JSON for programs, and errors as their code, what happened and what to do."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.errors import SystemRefused


def as_json(value: Any) -> str:
    """One value as a line of JSON."""
    return msgspec.json.encode(value).decode()


def error_lines(error: AxonError) -> str:
    """``CODE: what happened``, and below it the hint."""
    text = f"{error.code}: {error.message}"
    return f"{text}\n  {error.hint}" if error.hint else text


def unforeseen(error: OSError) -> AxonError:
    """What the system refused, in the form of every other error."""
    what = os.strerror(error.errno).lower() if error.errno else str(error)
    where = f"{error.filename}: " if error.filename else ""
    return SystemRefused(f"{where}{what}", errno=error.errno or 0)
