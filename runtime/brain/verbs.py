"""The names a cognet imports: ``kernel`` and its verbs, ``every``, ``phase`` and ``system``.

They can be imported any time and resolve the brain they are bound to at the moment they are called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, overload

import msgspec

from capsule.result import RunResult
from capsule.scope import AxonScope
from runtime.abi.errors import CallInvalid, CognetAccessedBeforeLoad, KernelStopping
from runtime.abi.knowledge import KnowledgeEntry
from runtime.brain.clock import Rhythm
from runtime.brain.failure import describe
from runtime.brain.history import History
from runtime.brain.narration import OpenSpan
from runtime.brain.running import run
from runtime.brain.syscalls import Syscalls

NAME_LIMIT = 128


class Binding:
    """The one brain of this process: bound when a cognet is loaded, until it ends."""

    def __init__(self) -> None:
        self._syscalls: Syscalls | None = None
        self._is_over = False

    def clear(self) -> None:
        """A cognet is about to be loaded."""
        self._syscalls, self._is_over = None, False

    def bind(self, syscalls: Syscalls) -> None:
        """A cognet is loaded; its verbs are these."""
        self._syscalls = syscalls

    def end(self, syscalls: Syscalls) -> bool:
        """That brain has ended; whether it was the bound one."""
        if self._syscalls is not syscalls:
            return False
        self._syscalls, self._is_over = None, True
        return True

    def resolve(self, verb: str) -> Syscalls:
        """The bound brain; raises ``CognetAccessedBeforeLoad`` and, after the shutdown, ``KernelStopping``."""
        if self._is_over or (self._syscalls is not None and self._syscalls.is_over):
            raise KernelStopping(f"{verb} was called after the shutdown", verb=verb)
        if self._syscalls is None:
            raise CognetAccessedBeforeLoad(f"{verb} was called while no cognet is loaded", verb=verb)
        return self._syscalls


binding = Binding()


class KernelClock(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of the rhythm: wakes admitted since the kernel's boot."""

    wakes: int


class SessionLog:
    """``kernel.store.session``: the read side of the session log."""

    def get(self, *, after: int | None = None, upto: int | None = None) -> History:
        """Entries newer than ``after`` (default: all), none above ``upto``, in ``seq`` order.

        Synchronous: the live projection. What is older than the resident window is read page by page while
        iterating. Works everywhere once the cognet is loaded.
        """
        return binding.resolve("kernel.store.session.get").session.get(after=after, upto=upto)


class Store:
    """``kernel.store``: the session log to read, and a private cache over it."""

    session = SessionLog()

    def get(self, key: str) -> Coroutine[Any, Any, Any]:
        """The value of a declared key; None when absent, unreadable, or of a log that isn't this one."""
        return binding.resolve("kernel.store.get").store_get(key)

    def set(self, key: str, value: Any) -> Coroutine[Any, Any, None]:
        """Replace the value of a declared key; resolves when durable."""
        return binding.resolve("kernel.store.set").store_set(key, value)


class Knowledge:
    """``kernel.knowledge``: the agent's long-term material, by name; what a mind recalls of it is its own affair."""

    def list(
        self, *, match: str | None = None, limit: int | None = None
    ) -> Coroutine[Any, Any, Sequence[KnowledgeEntry]]:
        """The catalogue ordered by name, bytewise; ``match`` is sought in name and description, case aside."""
        return binding.resolve("kernel.knowledge.list").knowledge.list(match, limit)

    def read(self, name: str) -> Coroutine[Any, Any, str]:
        """The content of an entry; raises ``KnowledgeNotFound`` when there is none."""
        return binding.resolve("kernel.knowledge.read").knowledge.read(name)

    def write(self, name: str, content: str) -> Coroutine[Any, Any, None]:
        """Replace or make an entry of the agent's own; resolves when durable."""
        return binding.resolve("kernel.knowledge.write").knowledge.write(name, content)

    def remove(self, name: str) -> Coroutine[Any, Any, None]:
        """Remove an entry of the agent's own; nothing happens when there is none."""
        return binding.resolve("kernel.knowledge.remove").knowledge.remove(name)


class Engines:
    """``kernel.engine``: inference by role."""

    def __call__(self, role: str) -> Any:
        """The handle of a role that ``cognet.toml`` declares, by its type; raises ``EngineRoleUnbound``."""
        return binding.resolve("kernel.engine").engine(role)

    def has(self, role: str) -> bool:
        """Whether the role is declared, filled and can be asked now."""
        return binding.resolve("kernel.engine.has").has_engine(role)


class Kernel:
    """The syscall table: the whole vocabulary a cognet has for touching the world."""

    store = Store()
    knowledge = Knowledge()
    engine = Engines()

    def output(self, type_: str, data: Mapping[str, Any] | msgspec.Struct) -> Coroutine[Any, Any, None]:
        """Emit ``cognet:output:{text,audio,visual,field}``; resolves when durable. Once called, it is committed."""
        return binding.resolve("kernel.output").output(type_, data)

    def emit(self, type_: str, data: Mapping[str, Any] | msgspec.Struct) -> None:
        """Narrate: ``cognet:{phase,system,log}:*`` as telemetry; never waits."""
        binding.resolve("kernel.emit").narration.emit(type_, data)

    def wake(self) -> Coroutine[Any, Any, int]:
        """Admit a wake of a continuous cognet; resolves with its ordinal as soon as it is admitted."""
        return binding.resolve("kernel.wake").wake()

    def clock(self) -> KernelClock:
        """Wakes admitted so far."""
        return KernelClock(wakes=binding.resolve("kernel.clock").wakes)

    @overload
    def run(self, code: str) -> Coroutine[Any, Any, RunResult]: ...

    @overload
    def run(self, code: list[str]) -> Coroutine[Any, Any, list[RunResult]]: ...

    def run(self, code: str | list[str]) -> Coroutine[Any, Any, Any]:
        """Execute a block of Python in the capsule, or several at once; results in order, never an exception."""
        return run(code, binding.resolve("kernel.run"))

    def base(self) -> Coroutine[Any, Any, str]:
        """The agent's identity, rendered; "" when it declares none. Raises ``BaseInvalid``."""
        return binding.resolve("kernel.base").base()

    def fault(self, *, code: str, message: str, excerpt: str | None = None) -> Coroutine[Any, Any, None]:
        """Say that the model broke the grammar: the kernel writes it for the next tick; people don't see it."""
        return binding.resolve("kernel.fault").fault(code=code, message=message, excerpt=excerpt)

    def scope(self) -> AxonScope:
        """What the capsule can execute now: modules with their members, and what is unavailable, with the reason."""
        return binding.resolve("kernel.scope").current_scope()


kernel = Kernel()


def every(interval_s: float, callback: Callable[[], Any]) -> Rhythm:
    """Call ``callback`` (plain or async) every ``interval_s`` seconds on the monotonic clock, without drift.

    Periods that were missed whole, or came while the last call was still running, are skipped and counted.
    It begins when the boot hooks are done, and ends by itself when the kernel stops.
    """
    return binding.resolve("every").clocks.every(interval_s, callback)


class Span:
    """A named part of a tick in the telemetry; ``async with`` or ``with``."""

    def __init__(self, family: str, name: str) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT:
            raise CallInvalid(f"{family}() takes a name of 1 to {NAME_LIMIT} characters, not {name!r}")
        self._family = family
        self._name = name
        self._open: OpenSpan | None = None

    def __enter__(self) -> None:
        if self._open is not None:
            raise CallInvalid(f"this {self._family}({self._name!r}) is already open; make one for each use")
        self._open = OpenSpan(binding.resolve(self._family).narration, self._family, self._name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        span, self._open = self._open, None
        assert span is not None
        if error is None:
            span.end("complete")
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            span.end("interrupted")
        else:
            span.end("failed", describe(error))

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)


def phase(name: str) -> Span:
    """A phase of a tick: ``async with phase("sense"): ...`` tells its start and how it ended."""
    return Span("phase", name)


def system(name: str) -> Span:
    """A system inside a phase, told the same way."""
    return Span("system", name)
