"""How commands write: JSON for programs, and errors as their code, what happened and what to do."""

from __future__ import annotations

import os
import shlex
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.errors import SystemRefused


def as_json(value: Any) -> str:
    """One value as a line of JSON."""
    return msgspec.json.encode(value).decode()


def error_lines(error: AxonError) -> str:
    """``CODE: what happened``, and below it the hint, with the agent's folder where it is known."""
    text = f"{error.code}: {error.message}"
    folder = error.facts.get("folder")
    hint = error.hint.replace(" DIR", f" {shlex.quote(folder)}") if isinstance(folder, str) else error.hint
    return f"{text}\n  {hint}" if hint else text


def unforeseen(error: OSError) -> AxonError:
    """What the system refused, in the form of every other error."""
    what = os.strerror(error.errno).lower() if error.errno else str(error)
    where = f"{error.filename}: " if error.filename else ""
    return SystemRefused(f"{where}{what}", errno=error.errno or 0)
