"""Faults: the model broke the grammar, and the kernel writes it down for the next tick; the brain only describes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runtime.abi.errors import CallInvalid
from runtime.abi.faults import FAULT, bounded
from runtime.abi.link import Call, Row
from runtime.abi.payloads import SystemMessage
from runtime.kernel.brain_link import Verb, arguments
from runtime.log.log import Log

CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", re.ASCII)


class Faults:
    """``record`` is for the kernel's own parser of blocks, the verb ``fault`` for what a cognet finds."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may ask."""
        return {"fault": self._serve}

    async def _serve(self, call: Call, _: Callable[[Any], None]) -> None:
        code, message, excerpt = arguments(call, tuple[str, str, str | None])
        last = self._log.last_seq
        cursor = call.cursor if call.cursor is not None and 0 <= call.cursor <= last else None
        row = self.record(code=code, message=message, excerpt=excerpt, wake_id=call.wake_id, cursor=cursor)
        await self._log.durable(row.seq)

    def record(
        self,
        *,
        code: str,
        message: str,
        excerpt: str | None = None,
        wake_id: str | None = None,
        cursor: int | None = None,
    ) -> Row:
        """Admit it as ``axon:system:message`` of type ``format-violation``; on the loop, durable soon.

        ``excerpt`` is what the model wrote. Longer texts are cut, and the cut is named. Raises ``CallInvalid`` for a
        code that is none, and what the log raises.
        """
        if not CODE.fullmatch(code):
            raise CallInvalid(f"a fault's code is a word such as UNDECLARED_BINDING, not {code[:100]!r}", verb="fault")
        facts = {"code": code} if excerpt is None else {"code": code, "excerpt": bounded(excerpt)}
        told = SystemMessage(type=FAULT, text=bounded(message), facts=facts)
        return self._log.admit("axon:system:message", told, wake_id=wake_id, cursor=cursor, reserve=True)
