"""How much of what was refused is written down: arguments shortened, and no more entries than a log can bear."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

MAX_TEXT = 200
MAX_ITEMS = 16
MAX_DEPTH = 4
MAX_SHOWN = 8000
A_BLOCK = 8
A_SECOND = 10
MAX_BLOCKS = 256
SECOND_US = 1_000_000


def shown(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as an entry keeps them: what is long or deep is cut and says so, what JSON lacks is text."""
    found = {str(name)[:MAX_TEXT]: _shown(value, 1) for name, value in list(arguments.items())[:MAX_ITEMS]}
    if len(arguments) > MAX_ITEMS:
        found["..."] = f"{len(arguments) - MAX_ITEMS} more"
    if len(repr(found)) > MAX_SHOWN:
        return {
            name: value if isinstance(value, int | float) else repr(value)[:MAX_TEXT] for name, value in found.items()
        }
    return found


def _shown(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}... ({len(value)} characters)"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if depth < MAX_DEPTH and isinstance(value, list | tuple):
        more = [f"... {len(value) - MAX_ITEMS} more"] if len(value) > MAX_ITEMS else []
        return [_shown(item, depth + 1) for item in value[:MAX_ITEMS]] + more
    if depth < MAX_DEPTH and isinstance(value, dict):
        found = {str(key)[:MAX_TEXT]: _shown(item, depth + 1) for key, item in list(value.items())[:MAX_ITEMS]}
        return found | ({"...": f"{len(value) - MAX_ITEMS} more"} if len(value) > MAX_ITEMS else {})
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return type(value).__name__


class Allowance:
    """So many entries a block and a second; what is above is counted, to be told in sums.

    A block is whatever the caller names so: a block of code, or a channel of outputs.
    """

    def __init__(self, *, a_block: int = A_BLOCK, a_second: int = A_SECOND) -> None:
        self._a_block = a_block
        self._a_second = a_second
        self._blocks: dict[str, int] = {}
        self._second_us = -SECOND_US
        self._this_second = 0
        self._left_out: dict[str, int] = {}

    def take(self, block: str, name: str, now_us: int) -> bool:
        """Whether one more refusal of ``name`` in ``block`` gets an entry of its own."""
        if now_us - self._second_us >= SECOND_US:
            self._second_us, self._this_second = now_us, 0
        count = self._blocks.pop(block, 0)
        fits = count < self._a_block and self._this_second < self._a_second
        self._blocks[block] = count + fits  # the newest is last
        if len(self._blocks) > MAX_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
        if fits:
            self._this_second += 1
        else:
            key = name if name in self._left_out or len(self._left_out) < MAX_ITEMS else "..."
            self._left_out[key] = self._left_out.get(key, 0) + 1
        return fits

    def left_out(self) -> dict[str, int]:
        """How many got no entry since this was last asked, by name."""
        left_out, self._left_out = self._left_out, {}
        return left_out
