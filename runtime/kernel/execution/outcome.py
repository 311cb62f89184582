"""The outcome of a block as the log and the brain get it: valid whatever the capsule said, and bounded in size."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from capsule.errors import AxonError
from capsule.result import Absent, BlockError, CapsuleScope, ErrorKind, RunResult
from runtime.abi.payloads import AbsentName, ActionError, ActionResult, ActionScope
from runtime.kernel.execution.cut import cut_lines, cut_text, length, shares
from runtime.kernel.execution.plain import NotPlain, clean, json_of

MAX_CHARACTERS = 40_000
"""Of value, stdout and scope together."""
MAX_MESSAGE = 8_000
MAX_NOTE = 256
MAX_NAME = 256
OVERSIZED = "oversized"
GUESTS_CUT = re.compile(r"stdout: ([0-9][0-9,]{0,19}) characters left out")
"""What a guest says that has kept the ends of what a block printed; the kernel adds what it cuts itself."""
MAX_BYTES = 240 * 1024
"""Of the payload as JSON: an entry takes 256 KB, its envelope included."""

_encoder = msgspec.json.Encoder()


def failed(kind: ErrorKind, message: str) -> RunResult:
    """The result of a block that wasn't executed, or whose outcome isn't known."""
    return RunResult(ok=False, error=BlockError(kind=kind, message=cut_text(clean(message), MAX_MESSAGE)[0]))


def refused(error: AxonError) -> RunResult:
    """An error of the kernel's own as the result of a block: its code, what happened, what to do."""
    return failed("exception", str(error))


def bounded(result: RunResult) -> RunResult:
    """The same result, such that an entry can hold it: plain values, and no more than ``MAX_CHARACTERS``."""
    limit = MAX_CHARACTERS
    while True:
        fitted = _Fitting(result, limit).result()
        if len(_encoder.encode(payload("", fitted))) <= MAX_BYTES:
            return fitted
        limit //= 2  # control characters take six bytes each as JSON


def payload(action: str, result: RunResult) -> ActionResult:
    """A bounded result as the entry holds it."""
    scope, error = result.scope, result.error
    return ActionResult(
        action=action,
        ok=result.ok,
        value=result.value,
        value_error=result.value_error,
        stdout=result.stdout,
        scope=ActionScope(
            values=scope.values,
            unavailable=[AbsentName(name=absent.name, reason=absent.reason) for absent in scope.unavailable],
        ),
        error=None if error is None else ActionError(kind=error.kind, message=error.message),
        cut=result.cut,
    )


class _Sized(NamedTuple):
    """A value, and the characters of its JSON."""

    value: Any
    size: int


class _Fitting:
    """Fits one result into a limit, noting what is left out."""

    def __init__(self, result: RunResult, limit: int) -> None:
        self._result = result
        before = GUESTS_CUT.fullmatch(result.cut or "")
        self._lost_before = int(before[1].replace(",", "")) if before else 0
        self._notes = [clean(result.cut)] if result.cut and not before else []
        self._ok = result.ok and result.error is None
        self._value_error = result.value_error
        self._limit = limit
        self._nameless = 0

    def result(self) -> RunResult:
        """What fits."""
        value, text = self._value() if self._ok else (None, "")
        stdout = [clean(line) for line in self._result.stdout]
        values, absent = self._scope() if self._ok else ({}, [])
        asked = [len(text), length(stdout), _weight(values, absent)]
        for_value, for_stdout, for_scope = shares(asked, self._limit)
        value = self._cut_value(value, text, for_value)
        stdout, lost = cut_lines(stdout, for_stdout, lost_before=self._lost_before)
        self._note("stdout", lost)
        scope = self._cut_scope(values, absent, for_scope)
        error = None if self._ok else self._error()
        return RunResult(
            ok=self._ok,
            value=value,
            stdout=stdout,
            scope=scope,
            error=error,
            value_error=_short(self._value_error),
            cut=_short("; ".join(self._notes)),
        )

    def _value(self) -> tuple[Any, str]:
        """The value and its text; none of it when it isn't plain."""
        value = self._result.value
        if type(value) is str:
            value = clean(value)
            return value, value
        try:
            return value, "" if value is None else json_of(value)
        except NotPlain as error:
            self._value_error = self._value_error or str(error)
            return None, ""

    def _cut_value(self, value: Any, text: str, limit: int) -> Any:
        """A text keeps its ends; anything else becomes the text of its JSON, with its ends."""
        shown, lost = cut_text(text, limit)
        if not lost:
            return value
        self._note("value" if type(value) is str else "value, as text,", lost)
        return shown

    def _scope(self) -> tuple[dict[str, _Sized], list[Absent]]:
        """The values with their sizes, and the names without one; names that no entry can hold are only counted."""
        values: dict[str, _Sized] = {}
        absent = [each for each in self._result.scope.unavailable if _is_name(each.name)]
        self._nameless = len(self._result.scope.unavailable) - len(absent)
        for name, value in self._result.scope.values.items():
            if not _is_name(name):
                self._nameless += 1
                continue
            try:
                values[name] = _Sized(value, len(json_of(value)))
            except NotPlain:
                absent.append(Absent(name, "unserializable"))
        return values, absent

    def _cut_scope(self, values: dict[str, _Sized], absent: list[Absent], limit: int) -> CapsuleScope:
        """The largest values become ``oversized`` until the rest fits, then names are left out."""
        kept, absent, moved = dict(values), list(absent), 0
        weight = _weight(values, absent)
        for name in sorted(values, key=lambda name: values[name].size, reverse=True):
            if weight <= limit:
                break
            saved = kept.pop(name).size - len(OVERSIZED)
            if saved > 0:
                absent.append(Absent(name, "oversized"))
                moved += 1
                weight -= saved
            else:
                self._nameless += 1
                weight -= saved + len(OVERSIZED) + len(name)
        while absent and weight > limit:
            last = absent.pop()
            self._nameless += 1
            weight -= len(last.name) + len(last.reason)
        if moved:
            self._notes.append(f"scope: {moved:,} values too large")
        if self._nameless:
            self._notes.append(f"scope: {self._nameless:,} names left out")
        return CapsuleScope(values={name: sized.value for name, sized in kept.items()}, unavailable=absent)

    def _error(self) -> BlockError:
        """A failure always has a reason."""
        error = self._result.error or BlockError(kind="exception", message="the capsule gave no reason")
        message, lost = cut_text(clean(error.message), min(MAX_MESSAGE, self._limit))
        self._note("error", lost)
        return BlockError(kind=error.kind, message=message)

    def _note(self, what: str, lost: int) -> None:
        if lost:
            self._notes.append(f"{what}: {lost:,} characters left out")


def _weight(values: dict[str, _Sized], absent: list[Absent]) -> int:
    """The characters of a scope."""
    held = sum(len(name) + sized.size for name, sized in values.items())
    return held + sum(len(each.name) + len(each.reason) for each in absent)


def _is_name(name: str) -> bool:
    """Whether an entry can hold it as a name."""
    return len(name) <= MAX_NAME and clean(name) == name


def _short(text: str | None) -> str | None:
    return clean(text)[:MAX_NOTE] or None if text else None
