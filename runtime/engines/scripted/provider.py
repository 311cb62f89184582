"""The scripted provider: a whole engine without a model, for tests, demonstrations and a first day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.abi.engines import Counts, GenerateOptions, Message, StopReason
from runtime.abi.errors import EngineContextExceeded, EngineFailed
from runtime.engines.protocol import Order
from runtime.engines.provider import Offer, Outlet
from runtime.engines.scripted.script import Script, output_of, read, reply_to, script_path
from runtime.engines.scripted.tokens import count, tokens

CONTEXT = 4096
SLOTS = 4


class ScriptedEngine:
    """Serves all three types of role; holds nothing but its script."""

    def __init__(self, script: Script, *, context: int, slots: int) -> None:
        self._script = script
        self.context: int = context
        self.slots = slots
        self.facts: dict[str, Any] = {"rules": len(script.rules)}

    def count(self, messages: list[Message]) -> int:
        """The tokens of the messages as a prompt."""
        return count(messages)

    def generate(self, messages: list[Message], options: GenerateOptions, outlet: Outlet) -> Counts:
        """The reply of the first rule that fits, in pieces, at its pace."""
        prompt = count(messages)
        if prompt >= self.context:
            raise EngineContextExceeded(
                f"{prompt} tokens don't fit a context of {self.context}", tokens=prompt, context=self.context
            )
        answer = reply_to(self._script, messages)
        if answer is None:
            raise EngineFailed("no rule of the script answers this")
        reply, pace = answer
        said, stop_reason = _cut(reply, options.stop)
        pieces = tokens(said)
        room = min(options.max_tokens or self.context, self.context - prompt)
        if len(pieces) > room:
            pieces, stop_reason = pieces[:room], "length"
        for start in range(0, len(pieces), pace.piece_tokens):
            outlet.rest((pace.piece_ms if start else pace.first_ms) / 1000)
            outlet.piece("".join(pieces[start : start + pace.piece_tokens]))
        return Counts(prompt_tokens=prompt, generated_tokens=len(pieces), stop_reason=stop_reason)

    def transform(self, value: Any, outlet: Outlet) -> Any:
        """The output of the first rule that fits."""
        answer = output_of(self._script.transforms, value)
        if answer is None:
            raise EngineFailed("no rule of the script transforms this")
        outlet.rest(answer.rule.delay_ms / 1000)
        return answer.output

    def open(self, outlet: Outlet) -> ScriptedSession:
        """Begin a stream."""
        return ScriptedSession(self._script, outlet)


class ScriptedSession:
    """Gathers the words that are pushed; what a rule matches is told, and forgotten up to there."""

    def __init__(self, script: Script, outlet: Outlet) -> None:
        self._script = script
        self._outlet = outlet
        self._heard = ""

    def push(self, value: Any) -> None:
        """The next words; anything else counts as its text."""
        self._heard += value if isinstance(value, str) else str(value)
        while self._heard and (answer := output_of(self._script.streams, self._heard)):
            self._heard = self._heard[answer.end :] if answer.end else ""
            self._outlet.rest(answer.rule.delay_ms / 1000)
            self._outlet.piece(answer.output)

    def reset(self) -> None:
        """Forget the words."""
        self._heard = ""

    def close(self) -> None:
        """Nothing is left to tell: a rule that fits has told already."""


class ScriptedProvider:
    """Reads a script."""

    def offer(self, order: Order) -> Offer:
        """Whatever the script has rules for."""
        script = read(order.model, Path(order.folder))
        return Offer(
            types=script.types,
            input=order.input,
            output=order.output,
            context=_context(order),
            slots=_slots(order),
            model=str(script_path(order.model, Path(order.folder))),
        )

    def load(self, order: Order) -> ScriptedEngine:
        """The engine."""
        return ScriptedEngine(read(order.model, Path(order.folder)), context=_context(order), slots=_slots(order))


def _context(order: Order) -> int:
    """What the configuration says, else enough for the cognet."""
    return int(order.options.get("context", max(CONTEXT, order.context or 0)))


def _slots(order: Order) -> int:
    return int(order.options.get("slots", max(SLOTS, order.parallel)))


def _cut(reply: str, stop: list[str]) -> tuple[str, StopReason]:
    """The reply up to the first of the stop texts."""
    places = [place for text in stop if (place := reply.find(text)) >= 0]
    return (reply[: min(places)], "stop") if places else (reply, "end")


PROVIDER = ScriptedProvider()
