"""The agent's identity: ``boot.md`` rendered anew whenever the file is another, in a process that can be ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from runtime.abi.errors import BaseInvalid
from runtime.abi.link import Call
from runtime.config.agent import AgentConfig
from runtime.kernel.brain_link import Verb, arguments
from runtime.kernel.process import CHILD

FILE = "boot.md"
SAID = "[base]"
"""How each line about it begins: a newer one, or a file that is right, replaces it."""
PROGRAM = str(Path(__file__).with_name("base_template.py"))
PATIENCE_S = 20.0
"""How long a rendering may take on a busy board; its own bound on the processor's time is far lower."""


def variables(agent: AgentConfig, *, cognet: str, session: str) -> dict[str, str]:
    """What ``boot.md`` may name; docs/knowledge.md lists them."""
    return {
        "agent": agent.agent.name,
        "project": agent.agent.project or "",
        "cognet": cognet,
        "session": session,
        "profile": agent.profile.name,
    }


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a template; ``lasting`` when the same file would come to the same."""

    text: str = ""
    error: str = ""
    line: int = 0
    lasting: bool = True

    def refusal(self, path: Path) -> BaseInvalid | None:
        """The error that names the place in the file; None when there is a text."""
        if not self.error:
            return None
        place = f"{path}:{self.line}" if self.line else str(path)
        return BaseInvalid(f"{place}: {self.error}", file=str(path), line=self.line)


class Base:
    """``text`` is the rendered identity, "" where there is no ``boot.md``; ``BaseInvalid`` for one that can't be."""

    def __init__(
        self, agent: Path, named: Mapping[str, str], *, say: Callable[[str], None], settled: Callable[[str], None]
    ) -> None:
        self._path = agent / FILE
        self._variables = dict(named)
        self._say = say
        self._settled = settled
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="base")
        self._one = asyncio.Lock()
        self._state: tuple[int, ...] | None = None
        self._text = ""
        self._error: BaseInvalid | None = None
        self._first: asyncio.Task[None] | None = None

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may ask."""
        return {"base": self._serve}

    def start(self) -> None:
        """Render it ahead of the first call; on the loop, in the main thread, returns at once."""
        self._first = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """End what still renders."""
        if self._first is not None:
            self._first.cancel()
            await asyncio.wait([self._first])
        self._thread.shutdown(wait=False)

    async def text(self) -> str:
        """The identity as the file says it now."""
        await self._look()
        if self._error is not None:
            raise BaseInvalid(self._error.message, **self._error.facts)
        return self._text

    async def _serve(self, call: Call, _: Callable[[Any], None]) -> str:
        arguments(call, tuple[()])
        return await self.text()

    async def _look(self) -> None:
        """Render when the file isn't the one that was rendered last."""
        async with self._one:
            state = await asyncio.get_running_loop().run_in_executor(self._thread, self._state_of_file)
            if state == self._state:
                return
            found = await render(self._path, self._variables) if state else Rendered()
            self._text, self._error = found.text, found.refusal(self._path)
            self._state = state if found.lasting else None
            self._settled(SAID)
            if self._error is not None:
                self._say(f"{SAID} {self._error.message}")

    def _state_of_file(self) -> tuple[int, ...]:
        """What changes with the file; () when there is none."""
        try:
            now = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            return (error.errno or -1,)  # it is there and can't be read: the program will say why
        return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


async def render(path: Path, named: Mapping[str, str]) -> Rendered:
    """Have the template rendered; on the main thread, with which the program would die."""
    program = [sys.executable, "-I", "-S", CHILD, str(os.getpid()), "", sys.executable, "-P", PROGRAM, str(path)]
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *program, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        return Rendered(error=f"no process can be started to render it: {error.strerror}", lasting=False)
    try:
        async with asyncio.timeout(PATIENCE_S):
            answer, words = await process.communicate(msgspec.json.encode(dict(named)))
        return _answered(answer, words, process.returncode or 0)
    except TimeoutError:
        return Rendered(error=f"it wasn't rendered within {PATIENCE_S:.0f} s", lasting=False)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _answered(answer: bytes, words: bytes, code: int) -> Rendered:
    """What the program says, or what its end says."""
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return Rendered(error="it takes more time than it may: a loop without an end?")
    try:
        return msgspec.json.decode(answer, type=Rendered)
    except msgspec.MsgspecError:
        last = words.decode(errors="replace").strip().splitlines()[-1:] or [f"the renderer ended with {code}"]
        return Rendered(error=f"it couldn't be rendered: {last[0][:300]}", lasting=False)
