"""Zero: the reference mind. It folds the log, shows it to a model, says what the model says, runs what it writes.

Each tick is the same four steps, and only the log connects one tick with the next: what a block came to, what a person
said meanwhile and what the runtime found wrong all re-enter by the one door, ``sync``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime import Block, Done, Unclosed, Wake, Words, blocks, kernel, loop, phase
from runtime.abi.entries import Entry

from .turns import Turn, instructions, turns
from .voice import Voice

ROOM = 0.75  # of the context for the past; the rest is for the answer
LETTERS = 8  # no token has more on the average: what is longer needn't be counted to be too long


@dataclass
class State:
    """All that zero remembers: the log so far, and where what is shown begins. The next ``sync`` folds it again."""

    entries: list[Entry] = field(default_factory=list)
    seq: int = -1
    first: int = 0


@dataclass
class Answer:
    """What the model wants done: blocks to run, and whether it said that all is done, or left a block open."""

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
        finished = await act(answer)
    if finished:
        await kernel.store.set("checkpoint", {"seq": state.seq})
        wake.stop()


def sync() -> None:
    """Fold what the log has and the mind hasn't: everything on a cold boot, a few entries in a tick."""
    for entry in kernel.store.session.get(after=state.seq):
        state.entries.append(entry)
        state.seq = entry.time.seq


async def render() -> list[dict[str, str]]:
    """The context: who the agent is and what it can do, then the log as turns.

    When that is too long the older half is no longer shown: by halves, so that it mostly grows at its end alone, and
    an engine needn't read again what it has read.
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
    letters = sum(len(message["content"]) for message in messages)
    return bool(letters <= LETTERS * engine.context and await engine.count(messages) <= ROOM * engine.context)


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


async def act(answer: Answer) -> bool:
    """Run the blocks, all at once; the next ``sync`` brings their results. Whether nothing is left to see or to do."""
    if answer.blocks:
        await kernel.run(answer.blocks)
    elif not answer.done and not answer.broken:
        await kernel.fault(code="NOT_DONE", message="a message without a block ends with <done/> on a line of its own")
    return answer.done and not answer.blocks and not answer.broken
