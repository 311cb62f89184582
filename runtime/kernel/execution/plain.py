"""Plain values: what an entry, a message to the brain and JSON can all say, without change."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec

MAX_DEPTH = 100
"""Readers of the log decode recursively, on a stack that is never as empty as here."""

_encoder = msgspec.json.Encoder()


class NotPlain(ValueError):
    """This value can't be carried; the text says why."""


def json_of(value: Any) -> str:
    """A plain value as JSON; raises ``NotPlain``."""
    try:
        text = _encoder.encode(value).decode()
    except RecursionError:
        raise NotPlain("it is circular, or nested too deeply") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise NotPlain(str(error)) from None
    _check(value)
    return text


def clean(text: str) -> str:
    """The text as UTF-8 can say it: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _check(value: Any) -> None:
    """JSON has no words for some values and changes them silently; msgpack has none for big integers."""
    level, depth = [value], 0
    while level:
        if depth > MAX_DEPTH:
            raise NotPlain(f"it is nested more than {MAX_DEPTH} levels deep")
        below: list[Any] = []
        for each in level:
            below += _parts(each)
        level, depth = below, depth + 1


def _parts(value: Any) -> list[Any]:
    """What a value holds; raises ``NotPlain`` for one that isn't plain itself."""
    kind = type(value)
    if kind is list:
        return list(value)
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise NotPlain("a key isn't a str")
        return list(value.values())
    if kind is int and not -(2**63) <= value < 2**64:
        raise NotPlain("an integer has more than 64 bits")
    if kind is float and not isfinite(value):
        raise NotPlain(f"{value} has no JSON")
    if value is not None and kind not in (bool, int, float, str):
        raise NotPlain(f"a {kind.__name__} has no JSON")
    return []
