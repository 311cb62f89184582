"""Where a verb is called from: a tick of a wake, a hook, or nowhere in particular."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from runtime.abi.errors import SyscallOutsideWake


class Lifetime:
    """A wake or a hook while it is open; it numbers the spans inside it."""

    __slots__ = ("is_open", "spans", "wake_id")

    def __init__(self, wake_id: str | None = None) -> None:
        self.wake_id = wake_id
        self.is_open = True
        self.spans = 0

    def next_span(self) -> int:
        """The number of a new span, from 1."""
        self.spans += 1
        return self.spans


class Scope:
    """One tick of a lifetime; work started in it keeps it, even when later ticks have begun."""

    __slots__ = ("cursor", "life", "tick")

    def __init__(self, life: Lifetime, *, tick: int = 0, cursor: int | None = None) -> None:
        self.life = life
        self.tick = tick
        self.cursor = cursor


current_scope: ContextVar[Scope | None] = ContextVar("axon_scope", default=None)
current_span: ContextVar[int | None] = ContextVar("axon_span", default=None)
current_due_us: ContextVar[int | None] = ContextVar("axon_due_us", default=None)
"""When the clock's period that is being served was due; monotonic microseconds."""


@contextmanager
def hook_scope() -> Iterator[None]:
    """What runs inside is a hook: a scope of its own without a wake, whose spans have no parent."""
    around = current_scope.get(), current_span.get()
    life = Lifetime()
    current_scope.set(Scope(life))
    current_span.set(None)
    try:
        yield
    finally:
        life.is_open = False
        current_scope.set(around[0])
        current_span.set(around[1])


def open_scope() -> Scope | None:
    """The scope around the caller, if it is still open."""
    scope = current_scope.get()
    return scope if scope is not None and scope.life.is_open else None


def need_scope(verb: str) -> Scope:
    """The scope around the caller; raises ``SyscallOutsideWake`` when there is none or its wake has ended."""
    scope = open_scope()
    if scope is None:
        raise SyscallOutsideWake(f"kernel.{verb} was called outside every wake and hook", verb=verb)
    return scope
