"""Which argument is which parameter: a call's arguments bound to the names of a tool's declaration."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any


class _Unknown:
    """A default that the declaration doesn't show as a literal."""


_UNKNOWN = _Unknown()


class Binding:
    """The parameters of one declaration, such as ``def move(x: float, *, fast: bool = False) -> None``."""

    def __init__(self, declaration: str) -> None:
        """Raises ``ValueError`` for what declares no function."""
        try:
            self._signature = Signature(_parameters(declaration))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"no declaration of a function: {declaration[:200]}") from error
        self._defaults = {
            name: parameter.default
            for name, parameter in self._signature.parameters.items()
            if parameter.default not in (Parameter.empty, _UNKNOWN)
        }
        self._rest = next((p.name for p in self._parameters if p.kind is Parameter.VAR_POSITIONAL), None)
        self._others = next((p.name for p in self._parameters if p.kind is Parameter.VAR_KEYWORD), None)

    @property
    def _parameters(self) -> list[Parameter]:
        return list(self._signature.parameters.values())

    @property
    def names(self) -> set[str]:
        """The parameters by name; ``*args`` is one, ``**kwargs`` none, since its keys are names themselves."""
        return {p.name for p in self._parameters if p.kind is not Parameter.VAR_KEYWORD}

    @property
    def takes_any_name(self) -> bool:
        """Whether there is a ``**kwargs``."""
        return self._others is not None

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, literal defaults included; raises ``TypeError`` as the call itself would.

        ``*args`` is a list under its own name, what ``**kwargs`` takes stands under the names that were given.
        """
        given = dict(self._signature.bind(*args, **kwargs).arguments)
        if self._rest is not None:
            given[self._rest] = list(given.get(self._rest, ()))
        others = given.pop(self._others, {}) if self._others is not None else {}
        if twice := others.keys() & self._signature.parameters.keys():
            raise TypeError(f"{min(twice)!r} is a parameter by position, and was given by name too")
        given = {**self._defaults, **given}
        return {**{name: given[name] for name in self._signature.parameters if name in given}, **others}


def _parameters(declaration: str) -> list[Parameter]:
    (function,) = ast.parse(f"{declaration}: ...").body
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        raise ValueError("it declares something else")
    return list(_each(function.args))


def _each(args: ast.arguments) -> list[Parameter]:
    positional = [*args.posonlyargs, *args.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    found = [
        Parameter(
            one.arg,
            Parameter.POSITIONAL_ONLY if index < len(args.posonlyargs) else Parameter.POSITIONAL_OR_KEYWORD,
            default=_default(default),
        )
        for index, (one, default) in enumerate(zip(positional, [*missing, *args.defaults], strict=True))
    ]
    if args.vararg:
        found.append(Parameter(args.vararg.arg, Parameter.VAR_POSITIONAL))
    found += [
        Parameter(one.arg, Parameter.KEYWORD_ONLY, default=_default(default))
        for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    if args.kwarg:
        found.append(Parameter(args.kwarg.arg, Parameter.VAR_KEYWORD))
    return found


def _default(expression: ast.expr | None) -> Any:
    """The value of a literal; ``...`` stands for a default that no literal shows."""
    if expression is None:
        return Parameter.empty
    try:
        value = ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _UNKNOWN
    return _UNKNOWN if value is Ellipsis else value
