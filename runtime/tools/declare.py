"""``@tool``: marks a function of the agent's own modules as something that the agent's code may call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from runtime.abi.errors import ToolInvalid

_MARK = "__axon_tool__"
_Function = TypeVar("_Function", bound=Callable[..., Any])


def tool(function: _Function) -> _Function:
    """Offer this function, plain or async, to the agent's code; policy decides about each call.

    Its signature and docstring are what the agent sees. It takes and returns plain values: None, bool, int, float,
    str, bytes, lists and dicts of them. Raises ``ToolInvalid`` for what isn't a function, and for one that yields.
    """
    if not inspect.isfunction(function):
        raise ToolInvalid(f"@tool takes a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolInvalid(f"@tool {function.__name__}: it yields; a tool returns one value")
    setattr(function, _MARK, True)
    return function


def is_tool(value: object) -> bool:
    """Whether ``value`` was marked."""
    return inspect.isfunction(value) and getattr(value, _MARK, False) is True
