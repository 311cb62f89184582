"""The simulated actuator: it moves nothing, and writes down what it would have moved if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec

from runtime.abi.actuators import Value
from runtime.abi.clock import mono_us


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the trace: ``did`` is ``apply`` or ``safe``; times are of this machine, comparable with the log's."""

    did: str
    value: Value
    mono_us: int
    command: str = ""
    why: str = ""


class Simulated:
    """Keeps its value, and appends a JSON line to ``trace`` for everything it does, at once."""

    def __init__(self, trace: Path | None = None) -> None:
        self._file: BinaryIO | None = None if trace is None else trace.open("ab", buffering=0)

    def apply(self, value: Value, *, command: str) -> None:
        """Be at the value."""
        self._write(Trace(did="apply", value=value, command=command, mono_us=mono_us()))

    def rest(self, value: Value, *, why: str) -> None:
        """Be at the safe value."""
        self._write(Trace(did="safe", value=value, why=why, mono_us=mono_us()))

    def close(self) -> None:
        """End the trace."""
        if self._file is not None:
            self._file.close()

    def _write(self, line: Trace) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode(line) + b"\n")
