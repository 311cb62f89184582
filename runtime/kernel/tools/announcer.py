"""Approvals over MQTT: each change of one is published for whoever can answer; nothing is kept for later readers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from runtime.abi import topics
from runtime.kernel.tools.approvals import Approval, Asked
from runtime.mqtt.client import Connection

MAX_WAITING = 256


class Announcer:
    """``add`` a change; ``serve`` a connection, which begins with all that waits for an answer now."""

    def __init__(self, *, agent: str, pending: Callable[[], Sequence[Asked]]) -> None:
        self._agent = agent
        self._pending = pending
        self._waiting: deque[Approval] = deque(maxlen=MAX_WAITING)
        self._some = asyncio.Event()

    def add(self, approval: Approval) -> None:
        """Publish it when somebody can hear."""
        self._waiting.append(approval)
        self._some.set()

    async def serve(self, connection: Connection) -> None:
        """Publish for as long as the connection lives."""
        self._waiting = deque((Approval(state="asked", asked=asked) for asked in self._pending()), MAX_WAITING)
        while True:
            while self._waiting:
                approval = self._waiting.popleft()
                await connection.publish(topics.approval(self._agent), msgspec.json.encode(told(approval)), qos=1)
            self._some.clear()
            await self._some.wait()


def told(approval: Approval) -> dict[str, Any]:
    """The message: all that is known of the call, the state, and by when it has to be answered."""
    asked = msgspec.to_builtins(approval.asked)
    until_ms = approval.asked.asked_ms + round(approval.asked.ask_s * 1000)
    return {**asked, "state": approval.state, "by": approval.by, "until_ms": until_ms}
