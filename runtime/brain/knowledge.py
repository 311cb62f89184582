"""The brain's side of ``kernel.knowledge``: arguments checked where they are given, answers as what the ABI says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from runtime.abi.errors import CallInvalid, KnowledgeEscape, KnowledgeTooLarge
from runtime.abi.knowledge import MAX_ENTRY_BYTES, MAX_NAME_BYTES, KnowledgeEntry

Ask = Callable[[str, list[Any]], Awaitable[Any]]
"""Asks the kernel for a verb with its arguments."""


class KnowledgeCalls:
    """The four verbs, for the brain whose ``ask`` is given."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def list(self, match: str | None, limit: int | None) -> tuple[KnowledgeEntry, ...]:
        """The catalogue, ordered by name."""
        if not (match is None or isinstance(match, str)):
            raise CallInvalid(f"kernel.knowledge.list takes a text to match, not {match!r:.100}")
        if not (limit is None or (type(limit) is int and limit >= 0)):
            raise CallInvalid(f"kernel.knowledge.list takes a limit from 0, not {limit!r:.100}")
        found = await self._ask("knowledge.list", [match or "", limit if limit is None else min(limit, 2**62)])
        return msgspec.convert(found, tuple[KnowledgeEntry, ...])

    async def read(self, name: str) -> str:
        """The content of an entry."""
        content: str = await self._ask("knowledge.read", [_checked(name, "read")])
        return content

    async def write(self, name: str, content: str) -> None:
        """Resolves when the entry is durable."""
        if not isinstance(content, str):
            raise CallInvalid(f"kernel.knowledge.write takes text, not {type(content).__name__}")
        if len(content) > MAX_ENTRY_BYTES:
            size = len(content)
            raise KnowledgeTooLarge(f"{size:,} characters, more than one entry may have", size_bytes=size)
        await self._ask("knowledge.write", [_checked(name, "write"), content])

    async def remove(self, name: str) -> None:
        """Resolves when its absence is durable."""
        await self._ask("knowledge.remove", [_checked(name, "remove")])


def _checked(name: str, verb: str) -> str:
    """A name that can be said to the kernel, which knows the rest of the rule."""
    if not isinstance(name, str):
        raise CallInvalid(f"kernel.knowledge.{verb} takes a name, not {type(name).__name__}")
    if len(name) > MAX_NAME_BYTES:
        raise KnowledgeEscape(f"a name of {len(name):,} characters, more than {MAX_NAME_BYTES:,} bytes")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise KnowledgeEscape(f"{name!a:.200} can't be written as UTF-8") from error
    return name
