"""What the brain tells about itself: spans and log lines as telemetry, stamped where they happen."""

from __future__ import annotations

from typing import Any

import msgspec

from runtime.abi.clock import mono_us
from runtime.abi.errors import EntryInvalid, EntryTypeUnknown
from runtime.abi.plain import check_plain
from runtime.abi.telemetry import COGNET_MAY_EMIT, LogLine, Span, TelemetryEvent, check
from runtime.brain.connection import Connection
from runtime.brain.scope import Lifetime, current_scope, current_span, open_scope
from runtime.brain.window import Window


class Narration:
    """Gives events their time, place in the log and wake, and hands them to the link."""

    def __init__(self, connection: Connection, window: Window) -> None:
        self._connection = connection
        self._window = window
        self._outside = Lifetime()

    def tell(self, type_: str, data: Any, *, wake_id: str | None = None) -> None:
        """Queue one event whose data are known to fit."""
        self._connection.tell(
            TelemetryEvent(type=type_, mono_us=mono_us(), after_seq=self._window.last_seq, wake_id=wake_id, data=data)
        )

    def emit(self, type_: str, data: Any) -> None:
        """The verb: check that a cognet may say this and that the data fit, then queue it."""
        if not isinstance(type_, str) or not type_.startswith(COGNET_MAY_EMIT):
            raise EntryTypeUnknown(
                f"kernel.emit takes {', '.join(f'{family}*' for family in COGNET_MAY_EMIT)}, not {type_!r}", type=type_
            )
        scope = open_scope()
        # A struct that the cognet made is unchecked.
        checked = check(type_, msgspec.to_builtins(data) if isinstance(data, msgspec.Struct) else data)
        if isinstance(checked, LogLine) and checked.facts:
            _check_facts(type_, checked.facts)
        self.tell(type_, checked, wake_id=scope.life.wake_id if scope else None)

    def report(self, message: str, *, level: str = "error", wake_id: str | None = None) -> None:
        """A diagnostic line of the brain itself."""
        self.tell(f"cognet:log:{level}", LogLine(message=message), wake_id=wake_id)

    def life(self) -> Lifetime:
        """What numbers the caller's spans: its wake or hook, or all that happens outside."""
        scope = current_scope.get()
        return scope.life if scope is not None else self._outside


def _check_facts(type_: str, facts: dict[str, Any]) -> None:
    try:
        check_plain(facts)
    except ValueError as error:
        raise EntryInvalid(f"{type_}: facts: {error}", type=type_) from error


class OpenSpan:
    """A tick, phase or system between its start and its end."""

    __slots__ = ("_began_us", "_family", "_life", "_name", "_narration", "_number", "_parent", "_tick")

    def __init__(self, narration: Narration, family: str, name: str) -> None:
        scope = current_scope.get()
        self._narration = narration
        self._family = family
        self._name = name
        self._life = narration.life()
        self._tick = scope.tick if scope is not None else 0
        self._number = self._life.next_span()
        self._parent = current_span.get()
        current_span.set(self._number)
        self._began_us = mono_us()
        self._tell("start", None, None)

    def end(self, state: str, error: str | None = None) -> None:
        """Tell how it ended: ``complete``, ``failed`` or ``interrupted``."""
        current_span.set(self._parent)  # no token: an abandoned generator may end it in another context
        self._tell(state, mono_us() - self._began_us, error)

    def _tell(self, state: str, took_us: int | None, error: str | None) -> None:
        span = Span(
            name=self._name,
            span=self._number,
            parent=self._parent,
            tick=self._tick,
            took_us=took_us,
            error=error,
        )
        self._narration.tell(f"cognet:{self._family}:{state}", span, wake_id=self._life.wake_id)
