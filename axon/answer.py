"""What an agent answered to one stimulus: followed entry by entry until its wake has settled, and how it reads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from runtime.abi.entries import Entry
from runtime.abi.payloads import ActionResult, PythonAction, Settled, TextOutput
from runtime.abi.telemetry import TelemetryEvent

LINES = 12


class Answer:
    """``take`` what happened after the stimulus at ``seq``; ``settled`` when the agent has answered for it.

    ``say`` takes the words as they come, ``show`` what it did, a line each.
    """

    def __init__(self, seq: int, *, say: Callable[[str], None], show: Callable[[str], None]) -> None:
        self.seq = seq
        self.text = ""
        self.actions: dict[str, dict[str, Any]] = {}
        self.settled = False
        self.failure = ""
        self._say = say
        self._show = show
        self._wakes: set[str | None] = set()

    def take(self, found: Entry | TelemetryEvent) -> None:
        """The next entry or event; others than those that answer leave no trace."""
        if isinstance(found, TelemetryEvent):
            self._take_event(found)
            return
        data, answers = found.data, (found.context.cursor or 0) >= self.seq
        if isinstance(data, TextOutput) and answers:
            self._wakes.add(found.context.wake_id)
            self._speak(data)
        elif isinstance(data, PythonAction) and answers:
            self.actions[data.action] = {"code": data.code}
            self._show(_block(data.code, "> "))
        elif isinstance(data, ActionResult) and data.action in self.actions:
            self._result(data)
        elif isinstance(data, Settled) and data.upto_seq >= self.seq:
            self.settled = True

    def _take_event(self, event: TelemetryEvent) -> None:
        """A wake that failed has answered all that it will."""
        facts = event.data if isinstance(event.data, dict) else {}
        if event.type == "kernel:wake:settled" and facts.get("outcome") != "complete" and event.after_seq >= self.seq:
            self.failure = facts.get("error") or f"the wake was {facts.get('outcome')}"

    def _speak(self, data: TextOutput) -> None:
        words = data.content
        if (data.chunk is None or data.chunk.final) and not (self.text + words).endswith("\n"):
            words += "\n"
        self.text += words
        self._say(printable(words))

    def _result(self, data: ActionResult) -> None:
        action = self.actions[data.action]
        action |= {"ok": data.ok, "value": data.value, "stdout": data.stdout}
        action["error"] = msgspec.to_builtins(data.error) if data.error else None
        if data.stdout:
            self._show(_block("\n".join(data.stdout), "  "))
        if data.error:
            self._show(_block(f"{data.error.kind}: {data.error.message}", "! "))
        elif data.value is not None or not data.stdout:
            self._show(_block(repr(data.value), "= "))

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "seq": self.seq,
            "text": self.text,
            "actions": list(self.actions.values()),
            "settled": self.settled,
            "error": self.failure or None,
        }


def printable(text: str) -> str:
    """An entry's words must not drive somebody's terminal."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _block(text: str, mark: str) -> str:
    """A few lines, indented; the first with what it is."""
    lines = printable(text).rstrip("\n").split("\n")
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"... {len(lines) - LINES + 1} more lines"]
    return "\n".join(f"    {mark if number == 0 else '  '}{line}" for number, line in enumerate(lines))


def write(words: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(words)
    sys.stdout.flush()
