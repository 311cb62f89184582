"""The names of a block: which it bound at top level, and the globals behind them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capsule.guest.plain import MAX_CHARACTERS, NotPlain, clean, measured, size
from capsule.result import Absent, CapsuleScope

MAX_SCOPE = 400_000
"""Characters of a whole scope, names included; a message to the kernel has its limit too."""
MAX_NAMES = 2000


class Bindings:
    """What a block makes of the globals, from before it begins."""

    def __init__(self, globals_: dict[str, Any]) -> None:
        self._globals = globals_
        # Which objects they are, not the objects: a block that replaces a large one must not hold both.
        self._before = {name: id(value) for name, value in globals_.items()}
        self._stored: list[str] = []

    def stores(self, names: Iterable[str]) -> None:
        """Its statements at top level bind these, to what they were bound to before perhaps."""
        self._stored.extend(names)

    def names(self) -> list[str]:
        """What the block bound and still is bound: by statements at top level, ``global``, or ``globals()``."""
        others = (name for name, value in self._globals.items() if self._before.get(name) != id(value))
        names = dict.fromkeys([*self._stored, *others])
        return [name for name in names if type(name) is str and name in self._globals and not _is_own(name)]

    def bound(self) -> dict[str, Any]:
        """Those names with their values."""
        return {name: self._globals[name] for name in self.names()}

    def scope(self) -> tuple[CapsuleScope, int]:
        """The same as it can leave the capsule, and how many names are left out because they are too many."""
        values: dict[str, Any] = {}
        absent: list[Absent] = []
        names, left = self.names(), MAX_SCOPE
        for count, name in enumerate(names):
            left -= size(name)
            if left < 0 or count == MAX_NAMES:
                return CapsuleScope(values=values, unavailable=absent), len(names) - count
            try:
                values[clean(name)], cost = measured(self._globals[name], min(left, MAX_CHARACTERS))
                left -= cost
            except NotPlain as error:
                absent.append(Absent(clean(name), error.reason))
        return CapsuleScope(values=values, unavailable=absent), 0


def _is_own(name: str) -> bool:
    """Python's own names, such as ``__builtins__`` and ``__annotations__``."""
    return name.startswith("__") and name.endswith("__")
