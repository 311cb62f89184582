"""What a provider is: it says at the kernel's start what it would offer a role, and loads it in a worker.

A provider's module is imported only when a role names it, and what loads a model only in the worker.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from runtime.abi.engines import Counts, GenerateOptions, Message
from runtime.engines.protocol import Order

MODULES = {"scripted": "runtime.engines.scripted.provider"}
"""The module of each provider; its ``PROVIDER`` is the provider."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What would serve a role. ``leaves_machine``: a request goes out, so what it stands on must be durable first."""

    types: list[str]
    input: list[str]
    output: list[str]
    context: int | None
    slots: int
    model: str
    leaves_machine: bool = False


class RequestCancelled(Exception):
    """Nobody wants the answer any more; an engine lets it pass."""


class Outlet:
    """Where the pieces of one answer go, and how an engine learns that nobody wants it any more."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._cancelled = threading.Event()

    def piece(self, value: Any) -> None:
        """Tell a part of the answer; raises ``RequestCancelled``."""
        self.check()
        self._send(value)

    def check(self) -> None:
        """Between two batches of work: raises ``RequestCancelled``."""
        if self._cancelled.is_set():
            raise RequestCancelled

    def rest(self, seconds: float) -> None:
        """Let time pass; raises ``RequestCancelled`` as soon as that happens."""
        if self._cancelled.wait(seconds):
            raise RequestCancelled

    def cancel(self) -> None:
        """From another thread: nobody wants it any more."""
        self._cancelled.set()


class _Loaded(Protocol):
    """What every engine has: the facts that became certain when it was loaded."""

    context: int | None
    slots: int
    facts: dict[str, Any]


class Generator(_Loaded, Protocol):
    """Serves ``generate``; each of its slots may call ``generate`` in a thread of its own, ``count`` comes between."""

    def count(self, messages: list[Message]) -> int:
        """The tokens of the messages as a prompt."""

    def generate(self, messages: list[Message], options: GenerateOptions, outlet: Outlet) -> Counts:
        """Tell the answer piece by piece; raises ``EngineContextExceeded`` before any work."""


class Transformer(_Loaded, Protocol):
    """Serves ``transform``."""

    def transform(self, value: Any, outlet: Outlet) -> Any:
        """One value into another."""


class Session(Protocol):
    """One open stream; results go to the outlet it was opened with."""

    def push(self, value: Any) -> None:
        """The next value."""

    def reset(self) -> None:
        """Forget what was pushed so far."""

    def close(self) -> None:
        """Tell what is left."""


class Streamer(_Loaded, Protocol):
    """Serves ``stream``."""

    def open(self, outlet: Outlet) -> Session:
        """Begin a stream."""


Engine: TypeAlias = Generator | Transformer | Streamer


class Provider(Protocol):
    """One kind of engine."""

    def offer(self, order: Order) -> Offer:
        """In the kernel, at its start: what it would serve. Light; raises ``EngineModelInvalid``."""

    def load(self, order: Order) -> Engine:
        """In the worker, once: the engine, of the order's type. Raises ``AxonError``."""


def provider(name: str) -> Provider:
    """The provider of that name, which the configuration has checked."""
    found: Provider = importlib.import_module(MODULES[name]).PROVIDER
    return found
