"""A kernel for one command: the one that runs, else one that is started for the command alone, without drivers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axon.board import choose_profile
from axon.client import TIMEOUT_S, Control
from axon.options import LOCKED, RunOptions, kernel_argv
from runtime.abi.errors import AgentNotRunning, CognetInvalid
from runtime.config.agent import load_agent

SERVE_S = 120.0
"""A kernel checks its sandbox and its log before it serves: seconds at most, unless the disk is very slow."""
STOP_S = 30.0
LOOK_S = 0.02


@contextmanager
def headless(folder: Path, *, brain: bool, timeout_s: float = TIMEOUT_S, **options: Any) -> Iterator[Control]:
    """The control socket of the agent's kernel; with ``brain`` its cognet is loaded.

    Where none runs, one is started without drivers, and without a brain unless asked for, and ended in order
    afterwards; ``options`` are further fields of its ``RunOptions``. What it has to complain about goes to standard
    error. A kernel that another command has started for itself is waited for. ``timeout_s`` bounds each answer.
    Raises ``AgentNotRunning``, ``CognetInvalid``, ``AgentNotFound``, ``ConfigInvalid``.
    """
    folder = folder.absolute()
    asked = RunOptions(folder=str(folder), status=False, drivers=False, brain=brain, command=os.getpid(), **options)
    control, child = _serving(folder, asked, timeout_s)
    try:
        with control:
            if brain:
                _await_brain(control)
            yield control
    finally:
        if child is not None:
            _end(child)


def _serving(folder: Path, asked: RunOptions, timeout_s: float) -> tuple[Control, subprocess.Popen[bytes] | None]:
    """A kernel that answers, and the process if it is ours. Two that start at once: the second finds the first."""
    deadline = time.monotonic() + SERVE_S
    while time.monotonic() < deadline:
        if control := _running(folder, timeout_s):
            return control, None
        load_agent(folder, choose_profile(asked.profile))  # what is wrong with it is better said here
        child = _start(asked)
        try:
            control = _await_control(folder, child, timeout_s)
        except BaseException:
            _end(child)
            raise
        if control is not None:
            return control, child
    raise AgentNotRunning("a kernel holds this agent but doesn't answer", folder=str(folder))


def _running(folder: Path, timeout_s: float) -> Control | None:
    """The kernel that somebody runs; one that runs for another command is about to end: wait for that."""
    while True:
        try:
            control = Control(folder, timeout_s=timeout_s)
        except AgentNotRunning:
            return None
        if not control.run.command:
            return control
        with control:
            control.rest(1.0)


def _start(asked: RunOptions) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C is for the command, which then ends it in order."""
    return subprocess.Popen(
        kernel_argv(asked), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )


def _await_control(folder: Path, child: subprocess.Popen[bytes], timeout_s: float) -> Control | None:
    """The child's socket once it serves; None when another kernel came before it."""
    deadline = time.monotonic() + SERVE_S
    while (status := child.poll()) is None:
        try:
            control = Control(folder, timeout_s=timeout_s)
        except AgentNotRunning as error:
            if time.monotonic() > deadline:
                raise AgentNotRunning(f"the kernel of {folder} didn't begin to serve in time") from error
        else:
            if control.run.pid == child.pid:
                return control
            control.close()
        time.sleep(LOOK_S)
    if status != LOCKED:
        raise AgentNotRunning(f"the kernel of {folder} couldn't start", hint="The reason stands above.")
    return None


def _await_brain(control: Control) -> None:
    """Return when the cognet is loaded; ``CognetInvalid`` with the reason when it can't be."""
    while (state := control.ask("summary")["brain"]) != "up":
        if state != "loading":
            raise CognetInvalid(state.removeprefix(f"{CognetInvalid.code}: "))
        control.rest(LOOK_S)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End it in order; a kernel that doesn't is killed, which its next start repairs."""
    child.terminate()
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
