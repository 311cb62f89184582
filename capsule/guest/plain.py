"""Values on their way out of the capsule: plain data or a reason, without running any code of theirs."""

from __future__ import annotations

import sys
from math import isfinite
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from capsule.result import AbsenceReason

MAX_DEPTH = 64
MAX_PARTS = 50_000
MAX_CHARACTERS = 200_000
"""As UTF-8, where some take up to four, in a value that holds others; a text alone has so many of any kind."""
PART = 9
"""Characters that a part counts beside its own: what the kernel takes is bounded in bytes."""


class NotPlain(Exception):
    """The value stays; ``reason`` is the specification's word, the text says more."""

    def __init__(self, reason: AbsenceReason, text: str) -> None:
        super().__init__(text)
        self.reason: AbsenceReason = reason


def plain(value: Any) -> Any:
    """The value as JSON can say it: subclasses as what they are built on, tuples as lists, numpy as Python.

    Raises ``NotPlain``.
    """
    if issubclass(type(value), str) and len(text := str.__str__(value)) <= MAX_CHARACTERS:
        return clean(text)  # alone, it counts characters whatever they take
    return measured(value, MAX_CHARACTERS)[0]


def measured(value: Any, max_characters: int) -> tuple[Any, int]:
    """The same with a limit of its own, and what it takes: its characters, and some for each of its parts."""
    copy = _Copy(max_characters)
    return copy.of(value, 0), copy.cost


class _Copy:
    """One copy, and what it has cost so far. Methods of the base types are called, never those of a subclass."""

    def __init__(self, max_characters: int) -> None:
        self._max_characters = max_characters
        self._parts = 0
        self._characters = 0
        self._around: set[int] = set()

    @property
    def cost(self) -> int:
        """In characters."""
        return self._characters + PART * self._parts

    def of(self, value: Any, depth: int) -> Any:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise NotPlain("oversized", f"it has more than {MAX_PARTS:,} parts")
        if value is None or value is True or value is False:
            return value
        kind = type(value)  # what isinstance() asks may be a property of the block's
        if issubclass(kind, int):
            return self._whole(int.__add__(value, 0))
        if issubclass(kind, float):
            return _finite(float.__add__(value, 0.0))
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if issubclass(kind, (list, tuple, dict)):
            return self._holding(value, depth)
        return self._other(value, depth)

    def _holding(self, value: Any, depth: int) -> Any:
        if id(value) in self._around:
            raise NotPlain("circular", "it contains itself")
        if depth >= MAX_DEPTH:
            raise NotPlain("oversized", f"it is nested more than {MAX_DEPTH} levels deep")
        self._around.add(id(value))
        try:
            if issubclass(type(value), dict):
                return {self._key(key): self.of(each, depth + 1) for key, each in dict.items(value)}
            kind = list if issubclass(type(value), list) else tuple
            return [self.of(each, depth + 1) for each in kind.__iter__(value)]
        finally:
            self._around.discard(id(value))

    def _other(self, value: Any, depth: int) -> Any:
        kind = type(value)
        numpy = sys.modules.get("numpy")
        if numpy is not None and _of(kind, "__module__") == "numpy":
            if issubclass(kind, numpy.ndarray):
                if numpy.ndarray.size.__get__(value) > MAX_PARTS:
                    raise NotPlain("oversized", f"an array of more than {MAX_PARTS:,} numbers")
                return self.of(numpy.ndarray.tolist(value), depth)
            if issubclass(kind, (numpy.bool_, numpy.number)):
                return self.of(numpy.generic.item(value), depth)
        if issubclass(kind, (FunctionType, BuiltinFunctionType, MethodType, type)):
            raise NotPlain("function", "a function or class can't leave the capsule")
        raise NotPlain("unserializable", f"{_name(value)} has no JSON")

    def _key(self, key: Any) -> str:
        if not issubclass(type(key), str):
            raise NotPlain("unserializable", f"a key is {_name(key)}, not str")
        return self._text(str.__str__(key))

    def _whole(self, value: int) -> int:
        if not -(2**63) <= value < 2**64:
            raise NotPlain("unserializable", "an integer has more than 64 bits")
        return value

    def _text(self, text: str) -> str:
        """Counted as UTF-8."""
        if len(text) > self._max_characters or self._characters + size(text) > self._max_characters:
            raise NotPlain("oversized", f"it has more than {self._max_characters:,} characters")
        self._characters += size(text)
        return clean(text)


def size(text: str) -> int:
    """In bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def clean(text: str) -> str:
    """Lone surrogates have no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _finite(value: float) -> float:
    if not isfinite(value):
        raise NotPlain("unserializable", f"{value} has no JSON")
    return value


def _name(value: Any) -> str:
    """Its type in words, of bounded length."""
    return f"a value of type {_of(type(value), '__name__'):.100}"


def _of(kind: type, name: str) -> str:
    """A type's own ``__name__`` or ``__module__``, whatever its metaclass answers to the same question."""
    answer = type.__dict__[name].__get__(kind)
    return answer if type(answer) is str else ""
