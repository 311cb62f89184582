"""The emergency stop's latch: set in memory at once, kept in ``data/stop.json``; an unreadable file means latched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from runtime.abi.clock import wall_ms
from runtime.durable.files import write_durable

FILE = "stop.json"
MAX_UNLOGGED = 100


class StopState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the agent is stopped, who did that, why, and when by the wall clock.

    ``count`` is the number of the last stop, by which actuators know one from another. ``unlogged`` are changes that
    were made while no kernel ran; the next one puts them into the log.
    """

    latched: bool
    by: str = ""
    reason: str = ""
    ms: int = 0
    count: Annotated[int, Meta(ge=0, le=2**50)] = 0
    unlogged: tuple[StopState, ...] = ()


class StopLatch:
    """Holds the state in memory; ``save`` makes it durable and is the only method that touches the disk."""

    def __init__(self, path: Path, state: StopState) -> None:
        self._path = path
        self._known = msgspec.json.encode(state)
        self.state = state

    @classmethod
    def load(cls, data: Path) -> StopLatch:
        """Read the agent's latch; blocking. No file means never stopped."""
        path = data / FILE
        try:
            return cls(path, _decoded(path.read_bytes()))
        except FileNotFoundError:
            return cls(path, StopState(latched=False))
        except OSError as error:
            return cls(path, _unreadable(error))

    @property
    def latched(self) -> bool:
        """Whether nothing may move."""
        return self.state.latched

    def latch(self, *, by: str, reason: str = "") -> None:
        """Stop, in memory, now; the first reason stays."""
        if not self.state.latched:
            self._change(latched=True, by=by, reason=reason, count=self.state.count + 1)

    def clear(self, *, by: str) -> None:
        """A person says that moving is safe again."""
        self._change(latched=False, by=by, reason="", count=self.state.count)

    def know(self, count: int) -> None:
        """Somebody holds a stop of that number: this one is no earlier, and clearing it clears that one too."""
        if count > self.state.count:
            self.state = msgspec.structs.replace(self.state, count=count)

    def note_unlogged(self) -> None:
        """The present state was reached beside the log: keep it for the next kernel to record."""
        earlier = self.state.unlogged[-MAX_UNLOGGED:]
        self.state = msgspec.structs.replace(
            self.state, unlogged=(*earlier, msgspec.structs.replace(self.state, unlogged=()))
        )

    def take_unlogged(self) -> tuple[StopState, ...]:
        """What the log still lacks; from now on it is the caller's to record."""
        taken = self.state.unlogged
        if not taken:
            return ()
        self.state = msgspec.structs.replace(self.state, unlogged=())
        return taken

    def _change(self, *, latched: bool, by: str, reason: str, count: int) -> None:
        self.state = StopState(
            latched=latched, by=by, reason=reason, ms=wall_ms(), count=count, unlogged=self.state.unlogged
        )

    def save(self) -> None:
        """Make the present state durable; blocking."""
        written = msgspec.json.encode(self.state)
        write_durable(self._path, written)
        self._known = written

    def stopped_outside(self) -> StopState | None:
        """A latched state that somebody else wrote into the file since; blocking."""
        try:
            found = self._path.read_bytes()
        except OSError:
            return None
        if found == self._known:
            return None
        self._known = found
        state = _decoded(found)
        return state if state.latched else None


def _decoded(content: bytes) -> StopState:
    try:
        state = msgspec.json.decode(content, type=StopState)
    except msgspec.MsgspecError as error:
        return _unreadable(error)
    # Written by an earlier release, it has no number; actuators know a stop by its number from 1.
    return msgspec.structs.replace(state, count=1) if state.latched and not state.count else state


def _unreadable(error: Exception) -> StopState:
    """What can't be read counts as stopped."""
    return StopState(latched=True, by="kernel", reason=f"{FILE} can't be read: {error}", ms=wall_ms(), count=1)
