"""The keys and types that ``[store]`` of a ``cognet.toml`` declares, such as ``checkpoint = "dict[str, float]"``."""

from __future__ import annotations

import ast
import re
from typing import Any

_SCALARS: dict[str, Any] = {"any": Any, "Any": Any, "bool": bool, "int": int, "float": float, "str": str, "None": None}
SESSION = "{session}"
_MAX_TEXT, _MAX_DEPTH = 256, 8
_KEY = re.compile(r"(?:[A-Za-z0-9_]|\{session\})(?:[A-Za-z0-9._-]|\{session\}){0,63}", re.ASCII)
EXPECTED = 'a type: any, bool, int, float, str, list[...], dict[str, ...], tuple[...], joined by "|" with None'
EXPECTED_KEY = "a key of up to 64 letters, digits, '.', '-', '_' and {session}"


def is_store_key(name: str) -> bool:
    """Whether ``name`` may be a key: it becomes the name of a file."""
    return _KEY.fullmatch(name) is not None


def store_type(text: str) -> Any:
    """The type that ``text`` names, for ``msgspec.convert``; ``ValueError`` for anything but such a type.

    >>> store_type("dict[str, float] | None")
    dict[str, float] | None
    """
    if len(text) > _MAX_TEXT:
        raise ValueError(f"a type of {len(text)} letters; expected {EXPECTED}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} is not {EXPECTED}") from error
    return _built(tree, depth=0)


def _built(node: ast.expr, *, depth: int) -> Any:
    """The type of one node of the expression."""
    if depth > _MAX_DEPTH:
        raise ValueError("a type nested too deeply")
    match node:
        case ast.Name(id="list"):
            return list[Any]
        case ast.Name(id="dict"):
            return dict[str, Any]
        case ast.Name(id=name) if name in _SCALARS:
            return _SCALARS[name]
        case ast.Constant(value=None):
            return None
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _either(_built(left, depth=depth + 1), _built(right, depth=depth + 1))
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return list[_built(item, depth=depth + 1)]  # type: ignore[misc]  # a type built at run time
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), item])):
            return dict[str, _built(item, depth=depth + 1)]  # type: ignore[misc]  # a type built at run time
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)) if items:
            return tuple[tuple(_built(item, depth=depth + 1) for item in items)]  # type: ignore[misc]  # the same
        case ast.Subscript(value=ast.Name(id="tuple"), slice=item):
            return tuple[_built(item, depth=depth + 1)]  # type: ignore[misc]  # the same
    raise ValueError(f"{ast.unparse(node)!r} is not {EXPECTED}")


def _either(left: Any, right: Any) -> Any:
    """A union; ``any`` swallows the rest, and None may stand on either side."""
    if left is Any or right is Any:
        return Any
    if left is None and right is None:
        return None
    return left | right
