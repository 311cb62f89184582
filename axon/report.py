"""How commands write: JSON for programs, and errors as their code, what happened and what to do."""

from __future__ import annotations

from typing import Any

import msgspec

from capsule.errors import AxonError


def as_json(value: Any) -> str:
    """One value as a line of JSON."""
    return msgspec.json.encode(value).decode()


def error_lines(error: AxonError) -> str:
    """``CODE: what happened``, and below it the hint."""
    text = f"{error.code}: {error.message}"
    return f"{text}\n  {error.hint}" if error.hint else text
