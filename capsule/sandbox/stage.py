"""A program that becomes another: tied to its parent, and for root without rights and with what it may bind in reach.

``python stage.py PARENT LIBRARIES SOURCE... -- COMMAND...``. With sources, each is shown as ``/tmp/<number>`` in a
mount namespace of its own before the process drops to an id that owns nothing: that id can't walk into
a private home, and bubblewrap resolves every path that it binds. Imports as little as it can: it delays every start.
"""

from __future__ import annotations

import ctypes
import os
import sys

STAGE = "/tmp"
GUEST_ID = 65534
PR_SET_PDEATHSIG, SIGKILL = 1, 9
CLONE_NEWNS = 0x0002_0000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x4_0000

libc = ctypes.CDLL(None, use_errno=True)


def main(parent: int, libraries: str, sources: list[str], command: list[str]) -> None:
    """Stage what is asked for, then run the command in this process."""
    first_to_die()
    if sources:
        show(sources)
        drop()
    tie_to(parent)
    if libraries:
        os.environ["LD_LIBRARY_PATH"] = libraries
    os.execv(command[0], command)


def first_to_die() -> None:
    """When the machine has no memory left, this process goes before any other; by root's word, it can't undo that."""
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def show(sources: list[str]) -> None:
    """Bind each source below ``STAGE``, seen by this process and its children alone."""
    check(libc.unshare(CLONE_NEWNS), "unshare")
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    opened = [os.open(source, os.O_PATH) for source in sources]  # some may lie below STAGE
    kinds = [os.path.isdir(source) for source in sources]
    mount("tmpfs", STAGE, kind="tmpfs", flags=MS_NOSUID | MS_NODEV, options="mode=0755,size=1m")
    for number, (descriptor, is_folder) in enumerate(zip(opened, kinds, strict=True)):
        target = f"{STAGE}/{number}"
        if is_folder:
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        mount(f"/proc/self/fd/{descriptor}", target, flags=MS_BIND | MS_REC)
        os.close(descriptor)


def drop() -> None:
    """Become the id that owns nothing; here rather than in bubblewrap, where root's processes stay uncounted."""
    os.setgroups([])
    os.setresgid(GUEST_ID, GUEST_ID, GUEST_ID)
    os.setresuid(GUEST_ID, GUEST_ID, GUEST_ID)


def tie_to(parent: int) -> None:
    """Die with the parent. After ``drop``, which would undo it; and look whether the parent was faster."""
    check(libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        sys.exit("the parent has ended")


def mount(source: str, target: str, *, kind: str = "none", flags: int, options: str = "") -> None:
    """``mount(2)``."""
    check(libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()), f"mount on {target}")


def check(result: int, what: str) -> None:
    """Raise what a C call reported."""
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    end = sys.argv.index("--")
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:end], sys.argv[end + 1 :])
