"""What a cognet imports: ``from runtime import every, kernel, loop, on, phase, system``; a tool module ``tool``."""

from __future__ import annotations

import sys
from types import ModuleType

from capsule.result import Absent, BlockError, CapsuleScope, RunResult
from capsule.scope import AxonScope
from runtime.abi import errors
from runtime.brain.blocks import Block, Done, Unclosed, Words, blocks
from runtime.brain.declare import loop, on
from runtime.brain.verbs import Kernel, every, kernel, phase, system
from runtime.brain.wake import Wake
from runtime.tools.declare import tool

_verbs = kernel


class _Surface(ModuleType):
    """Keeps ``kernel`` the verbs: importing the package ``runtime.kernel`` would put itself in that name."""

    @property
    def kernel(self) -> Kernel:
        """The verbs."""
        return _verbs

    @kernel.setter
    def kernel(self, _: object) -> None:
        """Imports of the package reach it as ``from runtime.kernel.x import y``."""


sys.modules[__name__].__class__ = _Surface

__all__ = [
    "Absent",
    "AxonScope",
    "Block",
    "BlockError",
    "CapsuleScope",
    "Done",
    "RunResult",
    "Unclosed",
    "Wake",
    "Words",
    "blocks",
    "errors",
    "every",
    "kernel",
    "loop",
    "on",
    "phase",
    "system",
    "tool",
]
