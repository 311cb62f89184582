"""Bytecode ahead of time: a guest sees its packages read-only, so it could never keep what it compiles."""

from __future__ import annotations

import compileall
from pathlib import Path


def compile_ahead(packages: list[Path]) -> bool:
    """Compile what is new in these folders; False where some couldn't be, which costs each start its time.

    Blocks, briefly when all is compiled already; for a thread.
    """
    compiled = [bool(compileall.compile_dir(str(package), quiet=2)) for package in packages]
    return all(compiled)
