"""Runs a module with one thing about it changed: ``python altered.py CHANGE MODULE [ARGUMENT]...``.

Changes: ``normal`` (commits don't sync: ``synchronous=NORMAL``), ``clock:FILE`` (the wall clock is off by the
milliseconds that the file says, read again each time).
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path


def main() -> None:
    change, module = sys.argv[1:3]
    del sys.path[0]  # this folder: as ``python -m`` in another one
    if change == "normal":
        _commit_without_sync()
    else:
        _follow(Path(change.removeprefix("clock:")))
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _commit_without_sync() -> None:
    from runtime.durable import database

    settings = tuple("synchronous=NORMAL" if each == "synchronous=FULL" else each for each in database.WRITER_PRAGMAS)
    assert settings != database.WRITER_PRAGMAS
    database.WRITER_PRAGMAS = settings


def _follow(file: Path) -> None:
    """Before anything of the product is imported, since it takes the clock by name."""
    from runtime.abi import clock

    clock.wall_ms = lambda: time.time_ns() // 1_000_000 + int(file.read_text())


if __name__ == "__main__":
    main()
