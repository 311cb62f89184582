"""One TOML file being read: values checked against a type, and every error with file, line, key and expectation."""

from __future__ import annotations

import math
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from runtime.abi.errors import ConfigInvalid
from runtime.config.lines import Key, Lines

T = TypeVar("T")
_AT = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `([^`]+)`")
_SHOWN = 60
MAX_BYTES = 1_000_000
_SEE = "docs/configuration.md lists every key."


def key_text(key: Key) -> str:
    """A key's path as people write it: ``sensors[0].fps``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_part_text(part)}" for part in key)
    return text.removeprefix(".")


def _part_text(part: str) -> str:
    """A name that TOML takes only in quotes for what it means, such as ``"arm.move"``."""
    return f'"{part}"' if "." in part or "*" in part else part


class Document:
    """A TOML file with the lines of its keys; ``data`` are its values as read."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise self._malformed(str(error), text) from error
        except (RecursionError, ValueError) as error:  # absurd nesting; an integer of thousands of digits
            raise self._malformed(f"not readable: {error}", text) from error
        self._lines = Lines(text)
        try:
            self._refuse_nan((), self.data)
        except RecursionError as error:  # a dotted key of thousands of parts
            raise self._malformed("nested too deeply", text) from error

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file; ``ConfigInvalid`` when it is no UTF-8 TOML, ``OSError`` when it can't be opened."""
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            facts: dict[str, Any] = {"file": str(path), "line": 1, "key": "", "expected": f"at most {MAX_BYTES} bytes"}
            raise ConfigInvalid(f"{path}: expected at most {MAX_BYTES} bytes", **facts)
        try:
            return cls(path, raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            facts = {"file": str(path), "line": line, "key": "", "expected": "UTF-8 text"}
            raise ConfigInvalid(f"{path}:{line}: expected UTF-8 text", **facts) from error

    def line(self, key: Key) -> int:
        """The line where ``key`` is written, or the nearest table around it."""
        return self._lines.of(key)

    def invalid(self, key: Key, expected: str, *, got: str = "", hint: str = _SEE) -> ConfigInvalid:
        """The error for ``key``; ``got`` is what stands there, already as text."""
        line, name = self.line(key), key_text(key)
        message = f"{self.path}:{line}: {name}: expected {expected}" + (f", got {got}" if got else "")
        return ConfigInvalid(message, hint=hint, file=str(self.path), line=line, key=name, expected=expected)

    def unknown(self, key: Key, known: list[str]) -> ConfigInvalid:
        """The error for a key that nobody knows, with the ones that exist."""
        close = get_close_matches(str(key[-1]), known, n=1)
        hint = f"Did you mean `{close[0]}`?" if close else _SEE
        return self.invalid(key, "one of the keys " + ", ".join(known), got=f"`{key[-1]}`", hint=hint)

    def table(self, key: Key, value: object) -> dict[str, Any]:
        """``value`` if it is a table, else the error for ``key``."""
        if not isinstance(value, dict):
            raise self.invalid(key, f"a table: [{key_text(key)}]", got=shown(value))
        return value

    def convert(self, key: Key, value: object, kind: type[T]) -> T:
        """``value``, which stands at ``key``, as a struct of type ``kind``; ``ConfigInvalid`` where it doesn't fit."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise self._misfit(key, value, kind=kind, text=str(error)) from error

    def _misfit(self, key: Key, value: object, *, kind: Any, text: str) -> ConfigInvalid:
        """Turn msgspec's words into the place in the file and what belongs there."""
        at = _AT.search(text)
        inner: Key = ()
        for name, number in _STEP.findall(at[1] if at else ""):
            if number == "...":
                break
            inner += (name if name else int(number),)
        field = _FIELD.match(text)
        if field is None:
            place = key + inner
            return self.invalid(
                place, expected_at(kind, inner), got="" if _secret(place) else shown(_dig(value, inner))
            )
        if "unknown" in text:
            return self.unknown((*key, *inner, field[1]), key_names(_kind_at(kind, inner)))
        place = (*key, *inner, field[1])
        return self.invalid(place, f"it to be given: {expected_at(kind, (*inner, field[1]))}", got="nothing")

    def _malformed(self, reason: str, text: str) -> ConfigInvalid:
        found = re.search(r"at line (\d+)", reason)
        line = int(found[1]) if found else max(1, len(text.splitlines()))
        facts: dict[str, Any] = {"file": str(self.path), "line": line, "key": "", "expected": "TOML"}
        return ConfigInvalid(f"{self.path}:{line}: expected TOML: {reason}", **facts)

    def _refuse_nan(self, key: Key, value: object) -> None:
        """TOML has ``nan`` and ``inf``; no key here means anything by them."""
        if isinstance(value, float) and not math.isfinite(value):
            raise self.invalid(key, "a finite number", got=str(value))
        if isinstance(value, dict):
            for name, inner in value.items():
                self._refuse_nan((*key, name), inner)
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                self._refuse_nan((*key, index), inner)


def shown(value: object) -> str:
    """A value as it stands in a message: short, one line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def key_names(kind: Any) -> list[str]:
    """The keys of a table of type ``kind``, as they are written in the file."""
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def expected_at(kind: Any, key: Key) -> str:
    """What belongs at ``key`` inside a table of type ``kind``, in words."""
    found = _kind_at(kind, key)
    if get_origin(found) in (Union, UnionType):
        found = get_args(found)[0]  # what may be left out is declared as "type | None"
    for note in getattr(found, "__metadata__", ()):
        if isinstance(note, msgspec.Meta) and note.description:
            return note.description
    if get_origin(found) is Annotated:
        found = get_args(found)[0]
    if get_origin(found) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(found))
    return {bool: "true or false", str: "text", int: "a whole number", float: "a number"}.get(found, "a table")


def _kind_at(kind: Any, key: Key) -> Any:
    """The declared type at ``key``, with its annotations; an element takes those of its list."""
    for part in key:
        bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if isinstance(part, int):
            element = get_args(bare)[0]
            kind = kind if bare is not kind and get_origin(element) is not Annotated else element
        elif isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            names = {field.encode_name: field.name for field in msgspec.structs.fields(bare)}
            kind = get_type_hints(bare, include_extras=True)[names[part]]
        else:
            break
    return kind


def _dig(value: Any, key: Key) -> object:
    """What stands at ``key`` inside ``value``."""
    for part in key:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):  # it isn't there: what holds the place is shown
            break
    return value


def _secret(key: Key) -> bool:
    """A broker's address may carry a password, which no message repeats."""
    return key == ("broker", "url")
