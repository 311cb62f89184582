"""Plain values: what a message, an entry and JSON can all say, and give back as it was."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

_encoder = msgspec.msgpack.Encoder()


def check_plain(value: Any, *, binary: bool = False) -> None:
    """Raise ``ValueError`` for what isn't plain; ``binary`` lets bytes pass, which JSON has no words for.

    Plain are None, bool, int of 64 bits, finite float, str, list (a tuple comes back as one) and dict with text as
    keys. Others would be changed in silence: NaN into null, a set into a list, 1 as a key into "1".
    """
    try:
        _encoder.encode(value)  # ends at a circle or a tower, which the walk below wouldn't
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error
    waiting = [value]
    while waiting:
        match waiting.pop():
            case float() as number if not isfinite(number):
                raise ValueError(f"{number} isn't finite")
            case int() as number if not -(2**63) <= number < 2**64:
                raise ValueError("a whole number has at most 64 bits")
            case dict() as table:
                if other := [name for name in table if not isinstance(name, str)]:
                    raise ValueError(f"the key {other[0]!r:.60} is no text")
                waiting.extend(table.values())
            case list() | tuple() as items:
                waiting.extend(items)
            case None | bool() | int() | float() | str():
                pass
            case bytes() if binary:
                pass
            case other:
                raise ValueError(f"{type(other).__name__} is no plain value")
