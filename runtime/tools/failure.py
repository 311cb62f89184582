"""An exception of the agent's own modules in few words: its class, its message, and its own line."""

from __future__ import annotations

import traceback
from pathlib import Path

MAX_WORDS = 2000


def describe(error: BaseException, folder: Path) -> str:
    """``ValueError: no such lamp (lamp.py:14)``; the line is the last one that lies in ``folder``."""
    words = _words(error)
    where = _line(error, folder)
    return f"{type(error).__name__}{f': {words}' if words else ''}{f' ({where})' if where else ''}"


def _words(error: BaseException) -> str:
    try:
        words = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # noqa: BLE001 - str() is the module's own code; its failure must not hide the first one
        words = "(its message can't be shown)"
    return words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS]}... ({len(words)} characters)"


def _line(error: BaseException, folder: Path) -> str:
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
    own = [f"{Path(name).name}:{line}" for name, line in places if Path(name).parent == folder]
    return own[-1] if own else ""
