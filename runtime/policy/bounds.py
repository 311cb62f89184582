"""Whether an argument is within its bound; NaN, infinities and values of another type never are."""

from __future__ import annotations

from math import isfinite
from typing import Any

from runtime.config.policy import Bound, bound_in_words

_SHOWN = 60


def violation(bound: Bound, value: Any) -> str | None:
    """Why ``value`` isn't within ``bound``, in a few words; None when it is."""
    if within(bound, value):
        return None
    return f"{_short(value)} isn't {bound_in_words(bound)}"


def within(bound: Bound, value: Any) -> bool:
    """Whether all that the bound states holds for ``value``."""
    if (bound.min is not None or bound.max is not None) and not _in_range(bound, value):
        return False
    if bound.values is not None and not any(_same(value, allowed) for allowed in bound.values):
        return False
    if bound.max_length is not None and not (_has_length(value) and len(value) <= bound.max_length):
        return False
    if bound.each is not None:
        return isinstance(value, list | tuple) and all(within(bound.each, item) for item in value)
    return True


def _in_range(bound: Bound, value: Any) -> bool:
    if not _is_number(value) or (isinstance(value, float) and not isfinite(value)):
        return False
    return (bound.min is None or value >= bound.min) and (bound.max is None or value <= bound.max)


def _same(value: Any, allowed: Any) -> bool:
    """Equal and of one kind: True is not 1, "1" is not 1, 1 is 1.0."""
    if _is_number(value) and _is_number(allowed):
        return bool(value == allowed)
    return type(value) is type(allowed) and bool(value == allowed)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _has_length(value: Any) -> bool:
    return isinstance(value, str | bytes | list | tuple | dict)


def _short(value: Any) -> str:
    if isinstance(value, str | bytes):
        value = value[:_SHOWN]
    elif isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    elif isinstance(value, int) and value.bit_length() > 200:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
