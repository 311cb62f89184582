"""The messages between the kernel and a capsule's guest."""

from __future__ import annotations

from typing import Any

import msgspec


class ToolCall(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A block calls ``module.member`` with plain values; ``block`` is the block's id, which is its action's."""

    block: str
    module: str
    member: str
    args: list[Any]
    kwargs: dict[str, Any]
