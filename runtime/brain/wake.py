"""A wake as the loop sees it: its stimuli, its end, and the slow work that outlasts its ticks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from runtime.abi.entries import Entry
from runtime.abi.errors import CallInvalid, SyscallOutsideWake
from runtime.brain.scope import Lifetime

_Result = TypeVar("_Result")


class Wake:
    """One invocation of the loop; its ticks share it."""

    def __init__(self, *, id_: str, ordinal: int, failed: Callable[[BaseException], None]) -> None:
        self.id = id_
        self.ordinal = ordinal
        """Its number since the kernel's boot, from 1."""
        self.tick = 0
        """The present tick, from 1."""
        self.cursor = 0
        """The ``seq`` up to which the present tick sees."""
        self.stimuli: Sequence[Entry] = ()
        """Stimuli admitted since the last tick start, in whichever wake; decoded when first looked at."""
        self.life = Lifetime(id_)
        self.spawned: set[asyncio.Task[Any]] = set()
        self._failed = failed
        self._stopped = False
        self._interrupted = False

    @property
    def stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._stopped

    @property
    def interrupted(self) -> bool:
        """Whether an interrupt was called; work that awaits nothing, or runs in a thread, looks here."""
        return self._interrupted

    def stop(self) -> None:
        """Let the present tick be the last."""
        self._stopped = True

    def spawn(self, work: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Start slow work that keeps the wake open, and in scope, until it ends; an interrupt cancels it.

        Raises ``SyscallOutsideWake`` when the wake has ended.
        """
        if not asyncio.iscoroutine(work):
            raise CallInvalid(f"wake.spawn takes a coroutine, not {work!r}")
        if not self.life.is_open:
            work.close()
            raise SyscallOutsideWake("wake.spawn was called after the wake had ended", verb="spawn")
        task = asyncio.get_running_loop().create_task(_contained(work))
        self.spawned.add(task)
        task.add_done_callback(lambda done: self._ended(done, work))
        if self._interrupted:
            task.cancel()
        return task

    def _ended(self, task: asyncio.Task[Any], work: Coroutine[Any, Any, Any]) -> None:
        work.close()  # it never began if it was cancelled at once
        self.spawned.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)

    def interrupt(self) -> None:
        """Cancel the spawned work and mark the wake; the runtime calls this, and cancels the tick itself."""
        self._interrupted = True
        for task in self.spawned:
            task.cancel()

    def __repr__(self) -> str:
        return f"<wake {self.ordinal}, tick {self.tick}>"


async def _contained(work: Coroutine[Any, Any, _Result]) -> _Result:
    """An exit that work asks for ends the work, not the brain."""
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError(f"the cognet called sys.exit({error.code!r})") from error
