"""How zero speaks: while the model still writes, as one emission in chunks."""

from __future__ import annotations

import asyncio
from typing import Any

from runtime import Wake, kernel

CHANNEL = "voice"


class Voice:
    """One message, spoken as one emission in chunks: each takes the words that came while the last one was written."""

    def __init__(self, wake: Wake) -> None:
        self._wake, self._name, self._words = wake, f"{wake.id}-{wake.tick}", ""
        self._speaking: asyncio.Task[Any] | None = None

    def say(self, words: str) -> None:
        """Speak soon; the model isn't held up by the disk."""
        self._words += words
        if self._words.strip() and (self._speaking is None or self._speaking.done()):
            self._speaking = self._wake.spawn(self._speak(final=False))

    async def finish(self) -> None:
        """Say the rest and close the emission; one that an interrupt cuts off stays open, which says just that."""
        if self._speaking is not None:
            await self._speaking
            await self._speak(final=True)

    async def _speak(self, *, final: bool) -> None:
        words, self._words = self._words, ""
        chunk = {"of": self._name, "final": final}
        await kernel.output("cognet:output:text", {"channel": CHANNEL, "content": words, "chunk": chunk})
