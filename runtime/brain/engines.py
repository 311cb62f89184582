"""The handles that ``kernel.engine(role)`` gives, one class a type of role; what fills the role stays out of sight."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import msgspec

from runtime.abi.engines import (
    Counts,
    EngineFacts,
    Generation,
    Message,
    check_messages,
    check_options,
    check_weight,
)
from runtime.abi.errors import CallInvalid, EngineRequestInvalid, EngineRoleUnbound
from runtime.abi.ids import uuid7
from runtime.abi.plain import check_plain

Messages = Iterable[Message | Mapping[str, str]]


class Caller(Protocol):
    """What a handle needs of the brain it belongs to."""

    engines: dict[str, EngineFacts]

    def call(self, verb: str, args: list[Any], *, hear: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        """Ask the kernel, from inside a wake or hook; with ``hear``, cancelling the future cancels the work."""


class Modalities(NamedTuple):
    """What goes into an engine and what comes out of it, such as ``text``."""

    input: tuple[str, ...]
    output: tuple[str, ...]


class Handle:
    """A role. Its facts are those of what fills it now; a cognet may keep a handle as long as it lives."""

    def __init__(self, role: str, brain: Caller) -> None:
        self.role = role
        self._brain = brain

    @property
    def facts(self) -> EngineFacts:
        """All that is known of what fills the role."""
        return self._brain.engines[self.role]

    @property
    def context(self) -> int | None:
        """How many tokens a request may have, its answer included; None where there is no such bound."""
        return self.facts.context

    @property
    def modalities(self) -> Modalities:
        """What goes in and what comes out."""
        return Modalities(tuple(self.facts.input), tuple(self.facts.output))

    @property
    def slots(self) -> int:
        """How many requests are served at once; others wait in their order."""
        return self.facts.slots

    def __repr__(self) -> str:
        return f"<engine {self.role!r}: {self.facts.type}>"


class GenerateEngine(Handle):
    """``type = "generate"``: continues messages with text."""

    def stream(self, messages: Messages, **options: Any) -> TextStream:
        """Begin to generate; iterate over the pieces. Cancelling the iteration cancels the work.

        ``options`` are those of ``GenerateOptions``. Raises ``EngineRequestInvalid`` at once; ``EngineUnavailable``,
        ``EngineFailed``, ``EngineContextExceeded`` and ``EngineQueueFull`` while iterating.
        """
        checked = check_messages(messages), check_options(options)
        inbox = _Inbox()
        call = self._brain.call("engine.generate", [self.role, *map(msgspec.to_builtins, checked)], hear=inbox.put)
        return TextStream(inbox.attached(call), call)

    async def request(self, messages: Messages, **options: Any) -> Generation:
        """The whole answer; raises as ``stream`` does."""
        stream = self.stream(messages, **options)
        async for _ in stream:
            pass
        assert stream.generation
        return stream.generation

    async def count(self, messages: Messages) -> int:
        """How many tokens the messages are as a prompt."""
        checked = msgspec.to_builtins(check_messages(messages))
        return int(await self._brain.call("engine.count", [self.role, checked], hear=_ignore))


class TransformEngine(Handle):
    """``type = "transform"``: one value into another."""

    async def transform(self, value: Any) -> Any:
        """The engine's output for a plain value."""
        _check_input(value)
        return await self._brain.call("engine.transform", [self.role, value], hear=_ignore)

    async def __call__(self, value: Any) -> Any:
        """Short for ``transform``."""
        return await self.transform(value)


class StreamEngine(Handle):
    """``type = "stream"``: values in, results out, as they come."""

    def open(self) -> ResultStream:
        """A stream, for ``async with``; it holds a slot of the engine until it ends."""
        return ResultStream(self)

    def begin(self, name: str, hear: Callable[[Any], None]) -> asyncio.Future[Any]:
        """The call that lives as long as the stream does."""
        return self._brain.call("engine.open", [self.role, name], hear=hear)

    def say(self, verb: str, *args: Any) -> asyncio.Future[Any]:
        """A call about an open stream."""
        return self._brain.call(f"engine.{verb}", list(args))


HANDLES: dict[str, type[Handle]] = {
    "generate": GenerateEngine,
    "transform": TransformEngine,
    "stream": StreamEngine,
}


def handle(role: object, brain: Caller) -> Any:
    """The handle of a role, of the class of its type; raises ``EngineRoleUnbound`` when there is none."""
    if not isinstance(role, str):
        raise CallInvalid(f"kernel.engine takes the name of a role, not {role!r}")
    facts = brain.engines.get(role)
    if facts is None:
        declared = ", ".join(brain.engines) or "none"
        raise EngineRoleUnbound(f"the cognet declares no role {role[:80]!r}; declared: {declared}", role=role[:80])
    if not facts.slots:
        raise EngineRoleUnbound(f"the role {role!r} is optional, and empty: {facts.reason}", role=role)
    return HANDLES[facts.type](role, brain)


def has(role: object, brain: Caller) -> bool:
    """Whether the role is declared, filled and can be asked now."""
    if not isinstance(role, str):
        raise CallInvalid(f"kernel.engine.has takes the name of a role, not {role!r}")
    facts = brain.engines.get(role)
    return facts is not None and facts.available


class _Inbox:
    """What has come of an answer and wasn't taken yet; the link holds this, and nothing that the cognet holds."""

    def __init__(self) -> None:
        self._arrived: deque[Any] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def attached(self, call: asyncio.Future[Any]) -> _Inbox:
        """The same inbox; whoever waits at it hears of the call's end too."""
        call.add_done_callback(lambda _: self._wake())
        return self

    def put(self, value: Any) -> None:
        """Another piece."""
        self._arrived.append(value)
        self._wake()

    async def take(self, call: asyncio.Future[Any]) -> Any:
        """The next piece; ``StopAsyncIteration`` when the call has ended and all is taken, or the call's error."""
        while not self._arrived:
            if call.done():
                if not call.cancelled():
                    call.result()
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._arrived.popleft()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


class _Answer:
    """Iterates over an answer; whoever stops iterating, or lets go of it, ends the work."""

    def __init__(self, inbox: _Inbox, call: asyncio.Future[Any]) -> None:
        self._inbox = inbox
        self._call = call

    async def _next(self) -> Any:
        try:
            return await self._inbox.take(self._call)
        except asyncio.CancelledError:
            self._let_go()
            raise

    async def aclose(self) -> None:
        """Nothing more is wanted."""
        self._let_go()

    def _let_go(self) -> None:
        if not self._call.done():
            self._call.cancel()
        elif not self._call.cancelled():
            self._call.exception()  # nobody is left whom it would concern

    def __del__(self) -> None:
        if not self._call.get_loop().is_closed():
            self._let_go()


class TextStream(_Answer):
    """A generation as it comes; ``generation`` is the whole of it, with its counts, once it has ended."""

    def __init__(self, inbox: _Inbox, call: asyncio.Future[Any]) -> None:
        super().__init__(inbox, call)
        self._pieces: list[str] = []
        self.generation: Generation | None = None

    def __aiter__(self) -> TextStream:
        return self

    async def __anext__(self) -> str:
        try:
            piece = str(await self._next())
        except StopAsyncIteration:
            if self._call.cancelled():
                raise
            counts = msgspec.convert(self._call.result(), Counts)
            self.generation = Generation(text="".join(self._pieces), **msgspec.structs.asdict(counts))
            raise
        self._pieces.append(piece)
        return piece


class ResultStream:
    """One open stream: ``push`` values, iterate over results; ``close`` lets the iteration end."""

    def __init__(self, engine: StreamEngine) -> None:
        self._engine = engine
        self._name = uuid7()
        self._answer: _Answer | None = None
        self._call: asyncio.Future[Any] | None = None
        self._closed = False

    async def __aenter__(self) -> ResultStream:
        if self._call is not None:
            raise CallInvalid("this stream was opened before; open another")
        inbox = _Inbox()
        self._call = self._engine.begin(self._name, inbox.put)
        self._answer = _Answer(inbox.attached(self._call), self._call)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        if self._answer is not None:
            await self._answer.aclose()

    async def push(self, value: Any) -> None:
        """The next value; resolves when the engine has worked on it."""
        _check_input(value)
        await self._say("push", value)

    def reset(self) -> None:
        """Forget what was pushed so far."""
        self._say("reset").add_done_callback(_heard)

    def close(self) -> None:
        """Nothing more is pushed: the iteration ends with the last result."""
        if not self._closed:
            self._say("close").add_done_callback(_heard)
            self._closed = True

    def __aiter__(self) -> ResultStream:
        return self

    async def __anext__(self) -> Any:
        if self._answer is None:
            raise CallInvalid("a stream is used inside `async with engine.open() as stream`")
        return await self._answer._next()

    def _say(self, verb: str, *args: Any) -> asyncio.Future[Any]:
        if self._answer is None or self._closed:
            raise CallInvalid(f"{verb}: the stream isn't open")
        return self._engine.say(verb, self._name, *args)


def _check_input(value: Any) -> None:
    """Refuse what an engine couldn't be told as it is; bytes are fine, a number that isn't finite isn't."""
    try:
        check_plain(value, binary=True)
    except ValueError as error:
        raise EngineRequestInvalid(f"the request is no plain value: {error}") from error
    check_weight(value)


def _heard(future: asyncio.Future[Any]) -> None:
    """What went wrong with the stream is told to whoever iterates over it."""
    if not future.cancelled():
        future.exception()


def _ignore(_: Any) -> None:
    """For calls that have no parts and are cancelled all the same."""
