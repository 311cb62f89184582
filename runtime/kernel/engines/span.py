"""What is told of a request to an engine: that it began, how it ended, its times and tokens, never its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from runtime.abi.clock import mono_us
from runtime.abi.telemetry import EngineSpan
from runtime.kernel.engines.request import Request

Tell = Callable[[str, msgspec.Struct, str | None], None]


class OpenSpan:
    """A request between its start and its end."""

    def __init__(self, tell: Tell, *, role: str, number: int, kind: str, wake_id: str | None) -> None:
        self._tell = tell
        self._wake_id = wake_id
        self._began = EngineSpan(role=role, span=number, kind=kind)
        self._asked_us = mono_us()
        tell("kernel:engine:start", self._began, wake_id)

    def end(self, state: str, request: Request | None, *, counts: Any = None, error: str | None = None) -> None:
        """``complete`` with the tokens an answer had, ``failed`` with its error's code, or ``interrupted``."""
        now = mono_us()
        began = request.began_us if request else None
        first = request.first_us if request else None
        tokens = counts if isinstance(counts, dict) else {}
        generated = tokens.get("generated_tokens")
        span = msgspec.structs.replace(
            self._began,
            waited_us=(began or now) - self._asked_us,
            ttft_ms=round((first - began) / 1000, 3) if first and began else None,
            took_us=now - self._asked_us,
            prompt_tokens=tokens.get("prompt_tokens"),
            cached_tokens=tokens.get("cached_tokens"),
            generated_tokens=generated,
            tokens_per_s=round(generated * 1e6 / (now - first), 1) if generated and first and now > first else None,
            error=error,
        )
        self._tell(f"kernel:engine:{state}", span, self._wake_id)
