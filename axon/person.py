"""Who is typing: the name that the log records beside what a person did."""

from __future__ import annotations

import getpass
import os


def person() -> str:
    """The user's name, or the number where the system has no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid-{os.getuid()}"
