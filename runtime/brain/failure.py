"""An exception of the cognet as a short text: where it passed through the code, and what it says."""

from __future__ import annotations

from pathlib import PurePath
from types import TracebackType

LIMIT = 1900
FRAMES = 6


def describe(error: BaseException) -> str:
    """The last frames and the message, at most ``LIMIT`` characters.

    The source lines are left out: the standard formatter would read files on the event loop.
    """
    lines = [f"{type(error).__name__}: {_message(error)}"[: LIMIT // 2]]
    lines += [f"  {place}" for place in places(error.__traceback__)[-FRAMES:]]
    return "\n".join(lines)[:LIMIT]


def places(traceback: TracebackType | None, *, full: bool = False) -> list[str]:
    """``file:line in function`` of every frame, the outermost first; paths are cut to folder and file or ``full``."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        file = code.co_filename if full else "/".join(PurePath(code.co_filename).parts[-2:])
        found.append(f"{file}:{traceback.tb_lineno} in {code.co_name}")
        traceback = traceback.tb_next
    return found


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception class of the cognet may be broken itself; its name must do
        return "(its message can't be shown)"
