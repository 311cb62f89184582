"""``kernel.run`` in the brain: blocks go to the kernel, and whatever happens to them comes back as results."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from capsule.errors import AxonError
from capsule.result import BlockError, RunResult
from runtime.abi.errors import CallInvalid


class Asks(Protocol):
    """What running needs of the syscalls."""

    def need(self, verb: str) -> object:
        """Raises ``SyscallOutsideWake`` and ``KernelStopping``."""

    def call(self, verb: str, args: list[Any], *, hear: Any) -> Any:
        """The future of the kernel's reply; a call with a ``hear`` is cancelled there when it is cancelled here."""


async def run(code: Any, kernel: Asks) -> Any:
    """The result of a block, or those of a list in its order.

    Raises only ``SyscallOutsideWake`` and ``KernelStopping``: all else is a result whose error is an ``exception``.
    """
    kernel.need("run")
    if isinstance(code, list | tuple):
        return await _run_all(list(code), kernel)
    if isinstance(code, str):
        return (await _run_all([code], kernel))[0]
    return _failed(CallInvalid(f"kernel.run takes a str or a list of str, not {type(code).__name__}"))


async def _run_all(codes: list[Any], kernel: Asks) -> list[RunResult]:
    """Blocks that no message can carry fail alone; the others are executed."""
    results = [_unsendable(code) for code in codes]
    sent = [str.__str__(code) for code, result in zip(codes, results, strict=True) if result is None]
    came = iter(await _ask(sent, kernel) if sent else [])
    return [next(came) if result is None else result for result in results]


async def _ask(codes: list[str], kernel: Asks) -> list[RunResult]:
    try:
        reply = await kernel.call("run", [codes], hear=_nothing)
        return msgspec.convert(reply, list[RunResult])
    except AxonError as error:
        return [_failed(error)] * len(codes)


def _nothing(_: object) -> None:
    """A run has no parts; to listen is what lets a cancel through."""


def _unsendable(code: Any) -> RunResult | None:
    """Why a block can't be sent, as its result."""
    if not isinstance(code, str):
        return _failed(CallInvalid(f"kernel.run takes a str or a list of str, not {type(code).__name__}"))
    if not code.isascii():
        try:
            code.encode()
        except UnicodeEncodeError as error:
            return _failed(CallInvalid(f"a block must be valid Unicode: {error}"))
    return None


def _failed(error: AxonError) -> RunResult:
    return RunResult(ok=False, error=BlockError(kind="exception", message=str(error)))
