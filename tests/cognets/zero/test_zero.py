"""Zero on a small kernel with the scripted engine: it speaks, acts, reads what came of it, and is all in its log."""

from __future__ import annotations

import ast
import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import cognets.zero
from runtime import kernel as verbs
from runtime.abi import link
from runtime.abi.chunks import assemble
from runtime.abi.engines import EngineFacts, check_messages, check_options
from runtime.abi.errors import EngineContextExceeded, EngineFailed, to_wire
from runtime.brain.cognet import Cognet, unload
from runtime.config.cognet import load_cognet
from runtime.engines.provider import Outlet
from runtime.engines.scripted.provider import ScriptedEngine
from runtime.engines.scripted.script import read

FOLDER = Path(cognets.zero.__file__).parent
ENDLESS = 'format = 1\n[[rules]]\nreply = "and on and on"\n'


def make(small_kernel: Any, engine: ScriptedEngine) -> Any:
    """A kernel that serves engines, blocks and faults; ``results`` says what a block comes to."""

    class Kernel(small_kernel.SmallKernel):  # type: ignore[misc]  # the module is loaded by its path
        def __init__(self) -> None:
            config = load_cognet(FOLDER)
            facts = EngineFacts(role="main", type="generate", context=engine.context, slots=1)
            super().__init__(
                FOLDER,
                mode=config.mode,
                store=config.store,
                max_ticks_per_wake=config.max_ticks_per_wake,
                engines=[facts],
            )
            self.base = "You are Zero."
            self.contexts: list[str] = []
            self.results: dict[str, Any] = {}
            self.pieces_held: list[tuple[int, Any]] | None = None

        def _call(self, call: link.Call) -> None:
            match call.verb, call.args:
                case "engine.generate", [_, messages, options]:
                    self._generate(call, messages, options)
                case "engine.count", [_, messages]:
                    self.write(link.Reply(call.call, engine.count(check_messages(messages))))
                case "fault", [code, text, excerpt]:
                    facts = {"code": code, "excerpt": excerpt}
                    self.admit("axon:system:message", {"type": "format-violation", "text": text, "facts": facts})
                    self.write(link.Reply(call.call))
                case "run", [codes]:
                    self._run(call, codes)
                case _:
                    super()._call(call)

        def _generate(self, call: link.Call, messages: Any, options: Any) -> None:
            self.contexts.append("".join(f"[{m['role']}] {m['content']}" for m in messages))
            pieces: list[Any] = []
            try:
                counts = engine.generate(check_messages(messages), check_options(options), Outlet(pieces.append))
            except (EngineContextExceeded, EngineFailed) as error:
                self.write(link.Reply(call.call, None, to_wire(error)))
                return
            if self.pieces_held is not None:
                self.pieces_held = [(call.call, piece) for piece in pieces]
                return
            for piece in pieces:
                self.write(link.Part(call.call, piece))
            self.write(link.Reply(call.call, counts))

        def _run(self, call: link.Call, codes: list[str]) -> None:
            actions = [f"{call.call}-{number}" for number in range(len(codes))]
            for action, code in zip(actions, codes, strict=True):
                self.admit("cognet:action:python", {"action": action, "code": code})
            found = [self.results.get(code.strip(), {"ok": True, "value": None}) for code in codes]
            for action, result in zip(actions, found, strict=True):
                self.admit("cognet:action:result", {"action": action, **result})
            self.write(link.Reply(call.call, found))

        def words(self) -> list[str]:
            return [emission.text for emission in assemble(self.log.entries()) if emission.text]

        def types(self) -> list[str]:
            return [entry.type for entry in self.log.entries()]

    return Kernel()


@pytest.fixture
async def kernel_with(small_kernel, tmp_path):
    made = []

    def kernel_of(script: str = "", *, context: int = 4096) -> Any:
        path = tmp_path / "script.toml"
        path.write_text(script)
        engine = ScriptedEngine(read("script.toml" if script else "default", tmp_path), context=context, slots=1)
        made.append(make(small_kernel, engine))
        return made[-1]

    yield kernel_of
    for kernel in made:
        if kernel.brain is not None and not kernel.brain.done():
            await kernel.kill()


def resident() -> Any:
    """The cognet's own memory, which no kernel ever sees."""
    return sys.modules["cognet.main"].state  # type: ignore[attr-defined]  # the cognet's module


async def ask(kernel: Any, words: str) -> None:
    """Say something and wait until the wake has settled beyond it."""
    seq = kernel.say(words)
    await kernel.until(lambda: kernel.settled_seq >= seq)


async def test_it_speaks_acts_reads_the_result_and_is_done(kernel_with):
    kernel = kernel_with()
    kernel.results["6*7"] = {"ok": True, "value": 42}
    await kernel.start()
    await ask(kernel, "what is 6*7? use python")
    assert kernel.words() == ["I'll let Python work that out.\n", "The answer is 42.\n"]
    types = [type_ for type_ in kernel.types() if type_ != "cognet:output:text"]
    assert types == ["cognet:stimulus:text", "cognet:action:python", "cognet:action:result", "axon:agent:settled"]
    assert all(emission.final for emission in assemble(kernel.log.entries()))


async def test_done_does_not_end_a_wake_with_results_that_nobody_has_read(kernel_with):
    kernel = kernel_with()
    kernel.results["6*7"] = {"ok": True, "value": 42}
    await kernel.start()
    await ask(kernel, "what is 6*7? use python")
    (wake,) = kernel.all(link.Ended)
    assert wake.ticks == 2
    assert "value: 42" in kernel.contexts[1]


async def test_its_memory_is_the_log_and_nothing_else(kernel_with):
    kernel = kernel_with()
    await kernel.start()
    await ask(kernel, "hello")
    await ask(kernel, "leave a block open")
    await ask(kernel, "again")
    before = kernel.log.entries()
    assert resident().entries == before[: len(resident().entries)]
    await kernel.kill()
    await kernel.start()
    await ask(kernel, "once more")
    assert resident().entries == kernel.log.entries()[: len(resident().entries)]
    assert len(resident().entries) > len(before)
    assert resident().seq == resident().entries[-1].seq


async def test_the_resident_model_equals_the_session_and_folding_again_folds_nothing(kernel_with):
    kernel = kernel_with()
    await kernel.start()
    await ask(kernel, "what is 6*7? use python")
    await ask(kernel, "leave a block open")
    async with asyncio.timeout(20):
        while len(verbs.store.session.get()) < len(kernel.log.rows):
            await kernel.breathe()
    main = sys.modules["cognet.main"]
    main.sync()  # type: ignore[attr-defined]  # the cognet's module
    assert resident().entries == list(verbs.store.session.get()) == kernel.log.entries()
    main.sync()  # type: ignore[attr-defined]  # as above
    assert len(resident().entries) == len(kernel.log.entries())


async def test_a_cold_boot_and_a_steady_tick_are_the_same_call_with_another_cursor(kernel_with):
    kernel = kernel_with()
    await kernel.start()
    await ask(kernel, "hello")
    warm = list(resident().entries)
    await kernel.kill()
    await kernel.start()
    assert resident().seq == -1
    sys.modules["cognet.main"].sync()  # type: ignore[attr-defined]  # the cognet's module
    assert resident().entries[: len(warm)] == warm


def test_it_has_one_door_and_no_hook_that_must_run():
    """It reads no stimuli of the wake, and nothing depends on a shutdown."""
    tree = ast.parse((FOLDER / "main.py").read_text())
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "stimuli" not in attributes
    assert not any(Cognet.load(FOLDER).hooks.values())
    unload()


@pytest.mark.parametrize("checkpoint", [None, {"seq": 10**9}, {"nonsense": []}])
async def test_the_checkpoint_bears_no_weight(kernel_with, checkpoint):
    kernel = kernel_with()
    await kernel.start()
    await ask(kernel, "hello")
    assert kernel.store["checkpoint"]["seq"] > 0
    await kernel.kill()
    kernel.store["checkpoint"] = checkpoint
    await kernel.start()
    await ask(kernel, "hello again")
    assert kernel.words()[-1].endswith("hello again\n")


async def test_an_unclosed_block_is_a_fault_that_the_next_tick_shows_the_model(kernel_with):
    kernel = kernel_with()
    kernel.results['"mended"'] = {"ok": True, "value": "mended"}
    await kernel.start()
    await ask(kernel, "leave a block open")
    assert '<system type="format-violation">\na block was begun' in kernel.contexts[1]
    assert '```python\n"never closed"' in kernel.contexts[1]
    assert kernel.words() == [
        "Here it comes.\n",
        "I left a block open, so nothing of it ran. Here is all of it.\n",
        "The answer is 'mended'.\n",
    ]


async def test_a_model_that_never_says_it_is_done_is_told_and_bounded(kernel_with):
    kernel = kernel_with(ENDLESS)
    await kernel.start()
    await ask(kernel, "hello")
    (wake,) = kernel.all(link.Ended)
    assert wake.ticks == load_cognet(FOLDER).max_ticks_per_wake
    assert "ends with <done/>" in kernel.contexts[1]
    assert not kernel.spans("cognet:tick:failed")


async def test_several_blocks_run_together_after_the_message(kernel_with):
    kernel = kernel_with(
        "format = 1\n[[rules]]\nwhen = 'value: 2'\nreply = '<done/>'\n"
        "[[rules]]\nreply = '''a\n```python\n1\n```\nb\n```python\n2\n```\nc\n'''"
    )
    kernel.results |= {"1": {"ok": True, "value": 1}, "2": {"ok": True, "value": 2}}
    await kernel.start()
    await ask(kernel, "go")
    runs = [message.args for message in kernel.all(link.Call) if message.verb == "run"]
    assert runs == [[["1\n", "2\n"]]]
    assert kernel.words() == ["a\nb\nc\n"]


async def test_words_are_spoken_while_the_model_still_writes(kernel_with):
    kernel = kernel_with()
    kernel.pieces_held = []
    await kernel.start()
    kernel.say("hello")
    await kernel.until(lambda: kernel.pieces_held)
    for call, piece in kernel.pieces_held[:3]:
        kernel.write(link.Part(call, piece))
    await kernel.until(lambda: kernel.words())
    assert not kernel.all(link.Ended)
    (emission,) = assemble(kernel.log.entries())
    assert not emission.final


async def test_an_interrupt_cuts_its_words_off_and_it_goes_on_with_the_next(kernel_with):
    kernel = kernel_with()
    kernel.pieces_held = []
    await kernel.start()
    kernel.say("hello")
    await kernel.until(lambda: kernel.pieces_held)
    call, piece = kernel.pieces_held[0]
    kernel.write(link.Part(call, piece))
    await kernel.until(lambda: kernel.words())
    kernel.interrupt()
    await kernel.until(link.Ended)
    await kernel.until(lambda: link.Cancel(call) in kernel.all(link.Cancel))
    kernel.pieces_held = None
    await ask(kernel, "and now?")
    assert [emission.final for emission in assemble(kernel.log.entries())].count(False) == 1
    assert '<system type="interrupt">' in kernel.contexts[-1]


async def test_when_the_context_is_full_the_oldest_turns_leave(kernel_with):
    kernel = kernel_with(context=600)
    await kernel.start()
    for number in range(30):
        await ask(kernel, f"message {number} with quite a few words to it")
    assert all(wake.outcome == "complete" for wake in kernel.all(link.Ended))
    last = kernel.contexts[-1]
    assert last.startswith("[system] You are Zero.")
    assert "message 29 with" in last
    assert "message 0 with" not in last
    assert "[system]" not in last[1:]
    assert last.index("[user]") < last.index("[assistant]")
    assert len(kernel.contexts) == 30


async def test_what_was_read_already_mostly_stays_as_it_was(kernel_with):
    """Turns leave by halves: most contexts begin with the one before, which an engine needn't read again."""
    kernel = kernel_with(context=600)
    await kernel.start()
    for number in range(30):
        await ask(kernel, f"message {number} with quite a few words to it")
    grown = [now.startswith(before) for before, now in pairwise(kernel.contexts)]
    assert grown.count(True) > 2 * grown.count(False) > 0


async def test_one_message_that_fits_nowhere_fails_its_wake_and_no_other(kernel_with):
    kernel = kernel_with(context=600)
    await kernel.start()
    await ask(kernel, "word " * 700)
    assert "ENGINE_CONTEXT_EXCEEDED" in (kernel.all(link.Ended)[0].error or "")
    await ask(kernel, "hello")
    assert kernel.words()[-1].endswith("I heard: hello\n")


async def test_an_engine_that_fails_fails_the_wake_loudly(kernel_with):
    kernel = kernel_with("format = 1\n[[rules]]\nwhen = 'never'\nreply = ''")
    await kernel.start()
    await ask(kernel, "hello")
    (wake,) = kernel.all(link.Ended)
    assert wake.outcome == "failed"
    assert "ENGINE_FAILED" in wake.error


async def test_its_phases_are_told(kernel_with):
    kernel = kernel_with()
    await kernel.start()
    await ask(kernel, "hello")
    await kernel.until(lambda: len(kernel.spans("cognet:phase:complete")) >= 4)
    assert [event.data["name"] for event in kernel.spans("cognet:phase:start")] == ["sync", "render", "invoke", "act"]
