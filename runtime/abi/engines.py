"""An engine as a cognet sees it: the facts of a role, whatever serves it."""

from __future__ import annotations

from typing import Literal

import msgspec

EngineType = Literal["generate", "transform", "stream"]


class EngineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One role. ``context`` is in tokens (None when there is none), ``slots`` the requests served at once.

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
