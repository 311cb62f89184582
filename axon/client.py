"""A command's side of the control socket: find the running kernel, ask it, get its answer."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import Hello, frame, receive_frame
from runtime.abi.errors import AgentNotRunning, from_wire
from runtime.abi.observe import CONTROL_PROTOCOL, Answer, Request, RunFile

RUN_FILE = "run.json"
TIMEOUT_S = 20.0


def running(folder: Path) -> RunFile:
    """Where the agent's kernel listens; ``AgentNotRunning`` when no file says so."""
    path = folder / "data" / RUN_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunFile)
    except OSError as error:
        raise AgentNotRunning(f"no kernel runs for {folder}", folder=str(folder)) from error
    except msgspec.MsgspecError as error:
        raise AgentNotRunning(f"{path} can't be read: {error}", folder=str(folder)) from error


class Control:
    """One connection to the control socket; use it as a context."""

    def __init__(self, folder: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self.run = running(folder)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        self._asked = 0
        self._came: dict[int, Answer] = {}
        try:
            self._greet()
        except BaseException as error:
            self._socket.close()
            if isinstance(error, ConnectionRefusedError | FileNotFoundError):
                message = f"no kernel runs for {folder}; the last one was killed"
                raise AgentNotRunning(message, folder=str(folder)) from error
            if isinstance(error, OSError | msgspec.MsgspecError):
                raise AgentNotRunning(f"the kernel of {folder} doesn't answer: {error}", folder=str(folder)) from error
            raise

    def _greet(self) -> None:
        """Connect and exchange hellos; ``FrameInvalid`` when another protocol is spoken there."""
        self._socket.connect(self.run.control)
        self._socket.sendall(frame(msgspec.msgpack.encode(Hello(protocol=CONTROL_PROTOCOL, pid=os.getpid()))))
        hello = msgspec.msgpack.decode(self._received(), type=Hello)
        if hello.protocol != CONTROL_PROTOCOL:
            raise FrameInvalid(f"the kernel speaks {hello.protocol!r}, this command {CONTROL_PROTOCOL!r}")

    def ask(self, verb: str, **args: Any) -> Any:
        """The kernel's answer as plain values; its refusal as the error it raised, silence as ``AgentNotRunning``."""
        with _losses(verb):
            return self._answer(self._send(verb, args))

    def wait_for(self, verb: str, **args: Any) -> Any:
        """The same, however long it takes, as long as the kernel answers other questions meanwhile."""
        with _losses(verb):
            number = self._send(verb, args)
            while True:
                try:
                    return self._answer(number)
                except TimeoutError:
                    self.ask("pids")

    def _send(self, verb: str, args: dict[str, Any]) -> int:
        self._asked += 1
        request = Request(verb=verb, args=args, number=self._asked)
        self._socket.sendall(frame(msgspec.msgpack.encode(request)))
        return self._asked

    def _answer(self, number: int) -> Any:
        """The answer to the question of that number; others that come before it are kept."""
        while number not in self._came:
            answer = msgspec.msgpack.decode(self._received(), type=Answer)
            self._came[answer.number] = answer
        answer = self._came.pop(number)
        if answer.error is not None:
            raise from_wire(answer.error)
        return answer.value

    def rest(self, seconds: float) -> None:
        """Let time pass between two questions, but no longer than the kernel stays on the line."""
        select.select([self._socket], [], [], seconds)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Control:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _received(self) -> bytes:
        payload = receive_frame(self._socket)
        if payload is None:
            raise ConnectionResetError("it closed the connection")
        return payload


@contextmanager
def _losses(verb: str) -> Iterator[None]:
    """Silence and a lost connection as ``AgentNotRunning``."""
    try:
        yield
    except AxonError:
        raise  # some are OSErrors too
    except TimeoutError as error:
        hint = "It may be busy or stuck; what was asked may still happen."
        raise AgentNotRunning(f"the kernel didn't answer {verb!r} in time", hint=hint, verb=verb) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise AgentNotRunning(f"the kernel ended during {verb!r}: {error}", verb=verb) from error


def ask(folder: Path, verb: str, *, timeout_s: float = TIMEOUT_S, **args: Any) -> Any:
    """One question on a connection of its own."""
    with Control(folder, timeout_s=timeout_s) as control:
        return control.ask(verb, **args)
