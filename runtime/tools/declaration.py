"""The real signature of a tool, written as Python source that parses on its own."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any

MAX_LITERAL = 200


def declaration(function: Callable[..., Any], name: str) -> str:
    """Such as ``def move(x: float, *, fast: bool = False) -> None``.

    A default that no literal shows is ``...``; an annotation that is no expression stands in quotes.
    """
    signature = inspect.signature(function)
    returns = signature.return_annotation
    result = "" if returns is inspect.Signature.empty else f" -> {_annotation(returns)}"
    word = "async def" if inspect.iscoroutinefunction(function) else "def"
    return f"{word} {name}({', '.join(_parameters(list(signature.parameters.values())))}){result}"


def _parameters(parameters: list[Parameter]) -> Iterator[str]:
    """Each as it is written, with the ``/`` and the ``*`` between them."""
    before: Parameter | None = None
    starred = False
    for parameter in parameters:
        only = before is not None and before.kind is Parameter.POSITIONAL_ONLY
        if only and parameter.kind is not Parameter.POSITIONAL_ONLY:
            yield "/"
        if parameter.kind is Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or parameter.kind is Parameter.VAR_POSITIONAL
        yield _parameter(parameter)
        before = parameter
    if before is not None and before.kind is Parameter.POSITIONAL_ONLY:
        yield "/"


def _parameter(parameter: Parameter) -> str:
    stars = "*" * (parameter.kind is Parameter.VAR_POSITIONAL) + "**" * (parameter.kind is Parameter.VAR_KEYWORD)
    text = stars + parameter.name
    annotated = parameter.annotation is not Parameter.empty
    if annotated:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is Parameter.empty:
        return text
    return text + (" = " if annotated else "=") + literal(parameter.default)


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = " ".join(text.split()).replace("typing.", "")
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return repr(text)
    return text


def literal(value: object) -> str:
    """The value as a short literal that means the same, else ``...``."""
    try:
        text = repr(value)
        same = len(text) <= MAX_LITERAL and _same(ast.literal_eval(text), value)
    except Exception:  # noqa: BLE001 - repr and == are the module's own code; what can't be shown isn't shown
        return "..."
    return text if same else "..."


def _same(read: object, value: object) -> bool:
    """Equal and of one type throughout: an enum may look like the number it isn't."""
    if type(read) is not type(value):
        return False
    if isinstance(read, list | tuple) and isinstance(value, list | tuple):
        return len(read) == len(value) and all(map(_same, read, value))
    if isinstance(read, dict) and isinstance(value, dict):
        return _same(list(read), list(value)) and _same(list(read.values()), list(value.values()))
    return read == value
