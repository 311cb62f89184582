"""What every block finds in the process, whatever the blocks before it have done to it."""

from __future__ import annotations

import builtins
import signal
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from capsule.guest.errors import Interrupted, PolicyDenied, ToolFailed
from capsule.guest.output import Console


class Surroundings:
    """The built-in names, the streams and the signal of a block; ``signalled`` handles SIGINT."""

    def __init__(self, signalled: Callable[[int, FrameType | None], None]) -> None:
        self._signalled = signalled
        self._console = Console()
        self._unraisable = sys.unraisablehook
        self._names: dict[str, Any] = {}
        self._modules: dict[str, ModuleType] = {}
        self._importers: list[tuple[list[Any], list[Any]]] = []

    def install(self) -> None:
        """On the main thread, before the first block."""
        builtins.PolicyDenied = PolicyDenied  # type: ignore[attr-defined]  # names that every block has
        builtins.ToolFailed = ToolFailed  # type: ignore[attr-defined]  # the same
        self._console.put_back()
        self._names = dict(vars(builtins))
        self._modules = dict(sys.modules)
        self._importers = [(found, list(found)) for found in (sys.meta_path, sys.path_hooks, sys.path)]
        self.put_back()

    def put_back(self) -> None:
        """On the main thread, before a run."""
        self.mend()
        self._console.put_back()
        self._put_back_imports()
        sys.unraisablehook = self._said_aside
        sys.settrace(None)
        sys.setprofile(None)
        signal.signal(signal.SIGINT, self._signalled)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _put_back_imports(self) -> None:
        for name, module in self._modules.items():
            sys.modules.setdefault(name, module)
        for found, before in self._importers:
            found.extend(one for one in before if one not in found)

    def _said_aside(self, what: Any) -> None:
        """An exception where none can be raised, such as in ``__del__``; that one was stopped there is no news."""
        if what.exc_type is not Interrupted:
            self._unraisable(what)

    def mend(self) -> None:
        """Built-in names that a block replaced or removed are as they were; names that it added stay."""
        builtins.__dict__.update(self._names)  # and not by vars(), which may be one of them
