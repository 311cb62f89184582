"""How a cognet declares itself while it is being imported: one ``@loop``, and hooks with ``@on``."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from runtime.abi.errors import CognetInvalid
from runtime.brain.wake import Wake

LoopBody = Callable[[Wake], Awaitable[None]]
HOOKS = {"boot": 0, "wake": 1, "tick": 1, "shutdown": 0}
"""Every hook, and how many arguments it is offered: the wake, for those that happen in one."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Hook(NamedTuple):
    """A function that a plugin wants called; ``takes_wake`` if it asks for the wake."""

    function: Callable[..., Any]
    takes_wake: bool

    async def __call__(self, wake: Wake | None = None) -> None:
        """Call it and await what it returns."""
        result = self.function(wake) if self.takes_wake else self.function()
        if inspect.isawaitable(result):
            await result


class Declarations:
    """What the modules of one cognet have declared so far, in the order of their import."""

    def __init__(self) -> None:
        self.loops: list[LoopBody] = []
        self.hooks: dict[str, list[Hook]] = {name: [] for name in HOOKS}


collecting: ContextVar[Declarations | None] = ContextVar("axon_collecting", default=None)
"""Set while a cognet is imported; outside of that (a test of the cognet's own) the decorators only check."""


def place(function: Callable[..., Any]) -> str:
    """Where a function stands, for messages: ``file:line name``."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno} {function.__name__}"


def loop(body: _Function) -> _Function:
    """Make this coroutine function the cognet's loop; it gets the wake and runs once a tick.

    Raises ``CognetInvalid`` for anything else than an ``async def`` of one argument.
    """
    if not inspect.iscoroutinefunction(body):
        raise CognetInvalid(f"@loop takes an async function, not {getattr(body, '__name__', body)!r}")
    if not _can_take(body, 1):
        raise CognetInvalid(f"{place(body)}: the loop takes one argument, the wake")
    declarations = collecting.get()
    if declarations is not None:
        declarations.loops.append(body)
    return body


def on(hook: str) -> Callable[[_Function], _Function]:
    """Call the function at ``boot``, at each ``wake`` or ``tick`` (it may take the wake), or at ``shutdown``.

    Plain and async functions are both fine. Raises ``CognetInvalid`` for a hook that doesn't exist.
    """
    if hook not in HOOKS:
        raise CognetInvalid(f"there is no hook {hook!r}; there are {', '.join(HOOKS)}", hook=str(hook))

    def register(function: _Function) -> _Function:
        offered = HOOKS[hook]
        takes_wake = offered == 1 and _can_take(function, 1)
        if not takes_wake and not _can_take(function, 0):
            raise CognetInvalid(f"{place(function)}: a {hook} hook takes {'the wake or ' * offered}no argument")
        declarations = collecting.get()
        if declarations is not None:
            declarations.hooks[hook].append(Hook(function, takes_wake))
        return function

    return register


def _can_take(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    return True
