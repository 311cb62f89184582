"""The self-test: a sandbox is built, its guest tries what is forbidden, and every act must be denied."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

import capsule
from capsule.errors import SandboxLeaks
from capsule.sandbox.launcher import Launched, launch
from capsule.sandbox.limits import Limits
from capsule.sandbox.lock import LIMITS_VARIABLE
from capsule.sandbox.plan import Bind, Plan, python_plan
from capsule.sandbox.probe import Check, Questions

PATIENCE_S = 30.0
ARRIVE = "arrive at the host's"
SET_BY_BWRAP_AND_PYTHON = ["PWD", "LC_CTYPE"]
ALWAYS_HIDDEN = [Path("/etc/shadow"), Path("/etc/passwd"), Path("/sys"), Path("/var"), Path("/home")]
ALWAYS_READ_ONLY = ["/", "/app", "/dev", "/etc", "/usr", "/proc/sys/kernel/hostname"]


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """Every forbidden act and what came of it; ``ok`` when all were denied."""

    ok: bool
    checks: list[Check]

    def leaks(self) -> list[Check]:
        """The acts that weren't denied."""
        return [check for check in self.checks if not check.denied]

    def must_hold(self) -> None:
        """Raise ``SandboxLeaks`` that names what was allowed."""
        if not self.ok:
            names = "; ".join(f"{leak.name}: {leak.detail}" for leak in self.leaks())
            raise SandboxLeaks(f"the sandbox allowed what it must deny: {names}", leaks=len(self.leaks()))


def self_test(
    *, packages: list[Path], hidden: list[Path], extra: list[Bind] | None = None, limits: Limits | None = None
) -> SelfTest:
    """Try a sandbox of the shape that ``python_plan`` gives with these arguments.

    ``hidden`` are the paths a guest must never see: the agent's axon.toml, data, modules, the checkout. Blocks
    for about three Python starts; main thread. Errors: ``SandboxUnavailable`` when no sandbox can be built.
    """
    found = _tried(packages, hidden, extra, limits)
    if all(leak.name.startswith(ARRIVE) for leak in found.leaks()) and found.leaks():
        # Somebody else of this machine may have dialled a port that was his a moment ago; not twice.
        found = _tried(packages, hidden, extra, limits)
    return found


def _tried(packages: list[Path], hidden: list[Path], extra: list[Bind] | None, limits: Limits | None) -> SelfTest:
    with _host() as host, ExitStack() as closing:
        report, theirs = _pair(closing)
        unused, pages = _pair(closing)
        closing.callback(unused.close)
        shape = python_plan(
            "capsule.sandbox.probe", [], packages=_with_own(packages), extra=extra, fds=(theirs, pages), limits=limits
        )
        questions = Questions(
            report_fd=theirs,
            hidden=_hidden(shape, hidden),
            read_only=[*ALWAYS_READ_ONLY, *(bind.dest for bind in shape.binds)],
            tcp_port=host[0].getsockname()[1],
            abstract_name=host[1].getsockname()[1:].decode(),
            kernel_pid=os.getpid(),
            environment=[*shape.env, LIMITS_VARIABLE, *SET_BY_BWRAP_AND_PYTHON],
            fds=[0, 1, 2, theirs, pages],
        )
        checks = _asked(shape, questions, report, closing)
        checks += [_untouched(listener) for listener in host]
    return SelfTest(ok=all(check.denied for check in checks), checks=checks)


def _hidden(shape: Plan, hidden: list[Path]) -> list[str]:
    """What exists on the host; a folder that all may know of stays out where something bound lies below it."""
    shown = {parent for bind in shape.binds for parent in Path(bind.dest).parents}
    always = [path for path in ALWAYS_HIDDEN if path not in shown]
    return [str(path) for path in dict.fromkeys([*always, *_checkout(), *hidden]) if path.exists()]


def _asked(shape: Plan, questions: Questions, report: socket.socket, closing: ExitStack) -> list[Check]:
    plan = msgspec.structs.replace(shape, argv=[*shape.argv, msgspec.json.encode(questions).decode()])
    with report:
        launched = launch(plan)
        try:
            closing.close()  # the guest has its own; ours would hide that it ended
            return _report(launched, report)
        finally:
            launched.kill()
            launched.popen.wait()
            launched.close()


def _report(launched: Launched, report: socket.socket) -> list[Check]:
    report.settimeout(PATIENCE_S)
    try:
        text = b"".join(iter(lambda: report.recv(65536), b""))
        said, _ = launched.popen.communicate(timeout=PATIENCE_S)
    except (TimeoutError, subprocess.TimeoutExpired):
        return [Check(name="hang", denied=False, detail=f"the guest didn't end within {PATIENCE_S:.0f} s")]
    if launched.popen.returncode != 0 or not text:
        detail = said.decode(errors="replace").strip()[-400:]
        return [Check(name="end without a report", denied=False, detail=detail or "nothing was said")]
    return msgspec.json.decode(text, type=list[Check])


@contextmanager
def _host() -> Iterator[tuple[socket.socket, socket.socket]]:
    """What the guest must not reach: two listeners, and a descriptor open for whoever inherits it."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(f"\0axon-self-test-{os.getpid()}")
        unix.listen()
        canary = os.open("/", os.O_RDONLY)
        stack.callback(os.close, canary)
        os.set_inheritable(canary, True)
        for listener in (tcp, unix):
            listener.setblocking(False)
        yield tcp, unix


def _untouched(listener: socket.socket) -> Check:
    """The host's side of the network acts: nobody came."""
    name = f"{ARRIVE} {listener.family.name} listener"
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return Check(name=name, denied=True, detail="nobody came")
    return Check(name=name, denied=False, detail="a connection arrived")


def _pair(closing: ExitStack) -> tuple[socket.socket, int]:
    ours, theirs = socket.socketpair()
    closing.callback(theirs.close)
    return ours, theirs.fileno()


def _with_own(packages: list[Path]) -> list[Path]:
    own = Path(capsule.__path__[0])
    return packages if any(package.name == own.name for package in packages) else [own, *packages]


def _checkout() -> list[Path]:
    """What lies beside the package where it runs from a checkout."""
    folder = Path(capsule.__path__[0]).resolve().parent
    return [folder / name for name in (".git", "pyproject.toml", "tests")]
