"""An engine as a cognet sees it: the facts of a role, what may be asked of one, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from runtime.abi.errors import EngineRequestInvalid

EngineType = Literal["generate", "transform", "stream"]
StopReason = Literal["end", "stop", "length"]
MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""The text of a request's messages, or its input as msgpack; a context of a million tokens fits."""
MAX_MESSAGES = 20_000
MAX_OUTPUT_TOKENS = 10_000_000


class EngineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One role. ``context`` is in tokens (None: no bound), ``slots`` the requests served at once (0: nothing fills it).

    ``available`` is false while nothing serves the role; ``reason`` says why.
    """

    role: str
    type: EngineType
    input: list[str] = []
    output: list[str] = []
    context: int | None = None
    slots: int = 1
    available: bool = True
    reason: str = ""


class _Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every part of a request has in common: an unknown key is an error."""


class Message(_Asked, frozen=True, kw_only=True):
    """One turn of a context."""

    role: Literal["system", "user", "assistant"]
    content: str


class GenerateOptions(_Asked, frozen=True, kw_only=True):
    """How to generate. An engine that doesn't sample takes ``temperature`` and ``seed`` and has no use for them.

    ``max_tokens`` None means until the context is full; generation ends before a text of ``stop`` would appear.
    """

    max_tokens: Annotated[int, Meta(ge=1, le=MAX_OUTPUT_TOKENS)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=10)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    stop: Annotated[list[Annotated[str, Meta(min_length=1, max_length=256)]], Meta(max_length=16)] = []


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. Of ``prompt_tokens`` the engine had ``cached_tokens`` from the request before.

    ``stop_reason``: ``end`` (the model had said all), ``stop`` (a text of ``stop`` came), ``length`` (``max_tokens``,
    or the context was full).
    """

    text: str
    prompt_tokens: int
    cached_tokens: int = 0
    generated_tokens: int = 0
    stop_reason: StopReason = "end"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """A ``Generation`` without its text, which went ahead in pieces."""

    prompt_tokens: int
    cached_tokens: int = 0
    generated_tokens: int = 0
    stop_reason: StopReason = "end"


_S = TypeVar("_S", bound=msgspec.Struct)


def check_messages(messages: object) -> list[Message]:
    """The messages of a request, every one of them sayable to a model; raises ``EngineRequestInvalid``."""
    if isinstance(messages, str | bytes) or not hasattr(messages, "__iter__"):
        raise EngineRequestInvalid("messages are a list of {role, content}")
    found = [_converted(message, Message, f"messages[{index}]") for index, message in enumerate(messages)]
    if not 0 < len(found) <= MAX_MESSAGES:
        raise EngineRequestInvalid(f"{len(found)} messages; a request has 1 to {MAX_MESSAGES}")
    size = sum(_check_text(message.content, f"messages[{index}].content") for index, message in enumerate(found))
    _check_size(size)
    return found


def check_options(options: object) -> GenerateOptions:
    """How to generate; raises ``EngineRequestInvalid``."""
    found = _converted(options, GenerateOptions, "options")
    for text in found.stop:
        _check_text(text, "options.stop")
    return found


def check_weight(value: object) -> None:
    """Refuse what is no plain value or weighs more than ``MAX_REQUEST_BYTES``."""
    try:
        size = len(msgspec.msgpack.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EngineRequestInvalid(f"the request holds what no message can carry: {error}") from error
    _check_size(size)


def _check_size(size: int) -> None:
    if size > MAX_REQUEST_BYTES:
        raise EngineRequestInvalid(f"the request has {size} bytes, above {MAX_REQUEST_BYTES}", size_bytes=size)


def _converted(value: object, kind: type[_S], where: str) -> _S:
    plain = msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value
    try:
        return msgspec.convert(dict(plain) if isinstance(plain, Mapping) else plain, kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise EngineRequestInvalid(f"{where}: {error}") from error


def _check_text(text: str, where: str) -> int:
    """Its length in UTF-8, if it is what a model can be told."""
    if "\0" in text:
        raise EngineRequestInvalid(f"{where} holds a NUL character")
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise EngineRequestInvalid(f"{where} holds half a character (a lone surrogate)") from error
