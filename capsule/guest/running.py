"""A block while it runs, wherever it runs: evaluated, stopped at most once, and its outcome always a result."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from capsule.guest import belonging, code, output
from capsule.guest.bindings import Bindings
from capsule.guest.errors import Interrupted
from capsule.guest.plain import NotPlain, plain
from capsule.protocol import Order
from capsule.result import BlockError, RunResult

MAX_MESSAGE = 8_000
MAX_FRAMES = 10
STOPPED = RunResult(ok=False, error=BlockError(kind="interrupt", message="the block was stopped"))


class Block:
    """One block: its text, its names, what it prints."""

    def __init__(self, order: Order, globals_: dict[str, Any], *, mend: Callable[[], None]) -> None:
        self.id = order.id
        self.was_hit = False
        """Whether it was told to end while it ran: then it was stopped, whatever it made of that."""
        self.hits = 0
        self._code = order.code
        self._name = f"{code.PREFIX} {order.id[-6:]}>"
        self._mend = mend
        self._value: Any = None
        self.output = output.Output()
        self.bindings = Bindings(globals_)
        self._globals = globals_

    def run(self, complete: Callable[[Any], None]) -> RunResult:
        """Execute it here; raises ``Interrupted`` alone. ``complete`` runs the coroutine of a block that awaits."""
        output.current.set(self.output)
        belonging.block.set(self.id)
        try:
            self._evaluate(complete)
            return self.stopped() if self.was_hit else self._succeeded()
        except Interrupted:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a block raises is its outcome
            return self.stopped() if self.was_hit else self._failed(error)
        finally:
            code.forget(self._name)

    def _evaluate(self, complete: Callable[[Any], None]) -> None:
        program = code.compiled(self._code, self._name)
        self.bindings.stores(code.stored(program))
        try:
            outcome = eval(program, self._globals)
            if code.is_async(program):
                complete(outcome)
        finally:
            self._mend()  # first of all: what follows needs them
            self._value = self._globals.pop(code.VALUE, None)

    def _succeeded(self) -> RunResult:
        value, value_error = None, None
        try:
            value = plain(self._value)
        except NotPlain as error:
            value_error = f"{error.reason}: {error}"
        scope, left_out = self.bindings.scope()
        stdout, cut = self.output.close()
        if left_out:
            cut = "; ".join([*([cut] if cut else []), f"scope: {left_out:,} names left out"])
        return RunResult(ok=True, value=value, value_error=value_error, stdout=stdout, scope=scope, cut=cut)

    def _failed(self, error: BaseException) -> RunResult:
        message = _message(error, self._name)
        stdout, cut = self.output.close()
        return RunResult(ok=False, stdout=stdout, error=BlockError(kind="exception", message=message), cut=cut)

    def stopped(self) -> RunResult:
        """The outcome of a block that was stopped; the kernel knows why."""
        stdout, cut = self.output.close()
        return RunResult(ok=False, stdout=stdout, error=STOPPED.error, cut=cut)


def _message(error: BaseException, name: str) -> str:
    """What happened, and the lines of the block that it came from."""
    try:
        found = traceback.TracebackException.from_exception(error, limit=-MAX_FRAMES, max_group_width=5)
        found.stack = traceback.StackSummary.from_list(
            [each for each in found.stack if each.filename.startswith(code.PREFIX)]
        )
        text = _told(found)
    except Interrupted:
        raise
    except BaseException as second:  # noqa: BLE001 - an exception that can't even be described
        text = f"{type(error).__name__} (it can't be described: {type(second).__name__})"
    text = text.replace(f'File "{name}", ', "")
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE // 2]} ... {text[-MAX_MESSAGE // 2 :]}"


def _told(found: traceback.TracebackException) -> str:
    """What first, then where; a group of exceptions as Python tells it."""
    if getattr(found, "exceptions", None):
        return "".join(found.format()).strip()
    lines = "".join(found.format_exception_only()).rstrip().split("\n")
    if isinstance(found.exc_type, type) and issubclass(found.exc_type, SyntaxError):
        lines = [lines[-1], *lines[:-1]]
    return "\n".join([*lines, "".join(found.stack.format()).rstrip()]).rstrip()
