"""The names of a block: which it bound at top level, and the globals behind them."""

from __future__ import annotations

from typing import Any

from capsule.guest.plain import NotPlain, plain
from capsule.result import Absent, CapsuleScope

VALUE = "__axon_value__"
"""Where the last expression of a block is put."""
MAX_NAMES = 1000


class Bindings(dict[str, Any]):
    """The local names of a block's top level: writes go to the globals and are remembered, reads find them there."""

    def __init__(self, globals_: dict[str, Any]) -> None:
        super().__init__()
        self._globals = globals_
        self._before = {name: id(value) for name, value in globals_.items()}
        self._bound: dict[str, None] = {}
        self.value: Any = None

    def __getitem__(self, name: str) -> Any:
        return self._globals[name]

    def __contains__(self, name: object) -> bool:
        return name in self._globals

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dict."""
        return self._globals.get(name, default)

    def __setitem__(self, name: str, value: Any) -> None:
        if name == VALUE:
            self.value = value
            return
        self._globals[name] = value
        self._bound[name] = None

    def __delitem__(self, name: str) -> None:
        del self._globals[name]
        self._bound.pop(name, None)

    def names(self) -> list[str]:
        """What the block bound and still is bound: by statements at top level, ``global``, or ``globals()``."""
        others = (name for name, value in self._globals.items() if self._before.get(name) != id(value))
        names = dict.fromkeys([*self._bound, *others])
        return [name for name in names if isinstance(name, str) and name in self._globals and not _is_own(name)]

    def bound(self) -> dict[str, Any]:
        """Those names with their values."""
        return {name: self._globals[name] for name in self.names()}

    def scope(self) -> CapsuleScope:
        """The same as it can leave the capsule."""
        values: dict[str, Any] = {}
        absent: list[Absent] = []
        for name in self.names()[:MAX_NAMES]:
            try:
                values[name] = plain(self._globals[name])
            except NotPlain as error:
                absent.append(Absent(name, error.reason))
        return CapsuleScope(values=values, unavailable=absent)


def _is_own(name: str) -> bool:
    """Python's own names, such as ``__builtins__`` and ``__annotations__``."""
    return name.startswith("__") and name.endswith("__")
