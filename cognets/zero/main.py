"""Zero: the reference mind. It folds the log, shows it to a model, says what the model says, runs what it writes.

Each tick is the same four steps, and only the log connects one tick with the next: what a block came to, what a person
said meanwhile and what the runtime found wrong all re-enter by the one door, ``sync``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from runtime import Block, Done, Unclosed, Wake, Words, blocks, kernel, loop, phase
from runtime.abi.entries import Entry

from .turns import Turn, instructions, turns

CHANNEL = "voice"
ROOM = 0.75
"""How much of the context the past may take; the rest is for the answer."""
LETTERS = 8
"""No token has more letters than this on the average: what is longer needn't be counted to be too long."""


@dataclass
class State:
    """All that zero remembers: the log so far. Lose it, and the next ``sync`` folds it again."""

    entries: list[Entry] = field(default_factory=list)
    seq: int = -1
    first: int = 0
    """The oldest entry that is still shown to the model."""


@dataclass
class Answer:
    """What the model wants done: blocks to run, and whether it said that all is done."""

    blocks: list[str] = field(default_factory=list)
    done: bool = False
    broken: bool = False


state = State()


@loop
async def think(wake: Wake) -> None:
    """One tick: take in what is new, think once, act once; then again, until nothing is left to see or to do."""
    async with phase("sync"):
        sync()
    async with phase("render"):
        messages = await render()
    async with phase("invoke"):
        answer = await invoke(wake, messages)
    async with phase("act"):
        await act(answer)
    # A result that nobody has read and a fault that the model hasn't seen both want another tick, done or not.
    if answer.done and not answer.blocks and not answer.broken:
        await kernel.store.set("checkpoint", {"seq": state.seq})
        wake.stop()


def sync() -> None:
    """Fold what the log has and the mind hasn't: everything on a cold boot, a few entries in a tick."""
    for entry in kernel.store.session.get(after=state.seq):
        state.entries.append(entry)
        state.seq = entry.time.seq


async def render() -> list[dict[str, str]]:
    """The context: who the agent is and what it can do, then the log as turns.

    When that is too long, the older half of the turns is no longer shown. By halves rather than one by one, so that
    what the engine has read already mostly stays as it was.
    """
    head = Turn("system", instructions(await kernel.base(), kernel.scope()))
    while True:
        shown = turns(state.entries, state.first)
        messages = [turn.message for turn in (head, *shown)]
        asked = [turn for turn in shown[1:] if turn.role == "user"]
        if not asked or await fits(messages):
            return messages
        state.first = asked[len(asked) // 2].first


async def fits(messages: list[dict[str, str]]) -> bool:
    """Whether the engine could read this and still have room to answer."""
    engine = kernel.engine("main")
    if engine.context is None:
        return True
    if sum(len(message["content"]) for message in messages) > LETTERS * engine.context:
        return False
    return bool(await engine.count(messages) <= ROOM * engine.context)


async def invoke(wake: Wake, messages: list[dict[str, str]]) -> Answer:
    """Think: words are spoken as they come, blocks are kept until the message is whole."""
    answer, voice = Answer(), Voice(wake)
    async for part in blocks(kernel.engine("main").stream(messages)):
        match part:
            case Words(words):
                voice.say(words)
            case Block(code):
                answer.blocks.append(code)
            case Done():
                answer.done = True
            case Unclosed():  # the runtime has told the kernel, and the next tick tells the model
                answer.broken = True
    await voice.finish()
    return answer


async def act(answer: Answer) -> None:
    """Run the blocks, all at once. The kernel writes down actions and results; the next ``sync`` brings them here."""
    if answer.blocks:
        await kernel.run(answer.blocks)
    elif not answer.done and not answer.broken:
        answer.broken = True
        await kernel.fault(code="NOT_DONE", message="a message without a block ends with <done/> on a line of its own")


class Voice:
    """One message, spoken as one emission in chunks: each takes the words that came while the last one was written."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._name = f"{wake.id}-{wake.tick}"
        self._words = ""
        self._speaking: asyncio.Task[Any] | None = None

    def say(self, words: str) -> None:
        """Speak soon; never waits, so that the model isn't held up by the disk."""
        self._words += words
        if self._words.strip() and (self._speaking is None or self._speaking.done()):
            self._speaking = self._wake.spawn(self._speak())

    async def finish(self) -> None:
        """Say the rest and close the emission; one that an interrupt cuts off stays open, which says just that."""
        if self._speaking is not None:
            await self._speaking
            await self._speak(final=True)

    async def _speak(self, *, final: bool = False) -> None:
        words, self._words = self._words, ""
        chunk = {"of": self._name, "final": final}
        await kernel.output("cognet:output:text", {"channel": CHANNEL, "content": words, "chunk": chunk})
