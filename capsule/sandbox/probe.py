"""The guest of the self-test: it tries what must be denied, and reports what came of it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import resource
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from capsule.sandbox.lock import lock_down
from capsule.sandbox.syscalls import DENIED, numbers

CLONE_NEWUSER = 0x1000_0000
PR_SET_PDEATHSIG = 1
# They would begin a second probe if they weren't denied; `os.fork` is tried on its own, with care.
NOT_CALLED_BARE = {"fork", "vfork"}
REFUSALS = (errno.EPERM, errno.ENOSYS)

Act = Callable[[], object]


class Questions(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe is told to try: things of the host that exist and that it must not reach."""

    report_fd: int
    hidden: list[str]  # paths of the host
    read_only: list[str]  # paths the guest may read
    tcp_port: int  # a listener on the host's loopback
    abstract_name: str  # another on an abstract Unix address
    kernel_pid: int
    environment: list[str]  # the only names that may be set
    fds: list[int]  # the only descriptors that may be open


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One forbidden act: whether it was ``denied``, and what the system said, or what was got."""

    name: str
    denied: bool
    detail: str


def attempt(name: str, act: Act) -> Check:
    """An act is denied when it raises what the system raises; whatever else happens is a leak."""
    try:
        got = act()
    except (OSError, ValueError) as error:
        return Check(name=name, denied=True, detail=str(error))
    return Check(name=name, denied=False, detail=f"got {got!r}"[:200])


def by_namespaces(questions: Questions) -> Iterator[Check]:
    """What the sandbox denies even before the guest locks itself down."""
    for path in questions.hidden:
        yield attempt(f"read {path}", partial(look, path))
    for path in questions.read_only:
        yield attempt(f"write to {path}", partial(leave_mark, path))
    yield attempt("connect to the host's loopback", lambda: reach(socket.AF_INET, ("127.0.0.1", questions.tcp_port)))
    yield attempt("connect to a socket of the host", lambda: reach(socket.AF_UNIX, f"\0{questions.abstract_name}"))
    yield attempt("see other processes", lambda: none_of(others()))
    yield attempt("signal the kernel", lambda: signal(questions.kernel_pid))
    yield attempt("see the host's environment", lambda: none_of(set(os.environ) - set(questions.environment)))
    yield attempt("find an open descriptor", lambda: none_of(open_fds() - set(questions.fds)))
    for device in ("mem", "kmsg", "sda", "vda", "mmcblk0", "nvme0n1"):
        yield attempt(f"open /dev/{device}", partial(os.open, f"/dev/{device}", os.O_RDONLY))
    yield attempt("mount", lambda: libc_call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None))
    yield attempt("make a user namespace", lambda: libc_call("unshare", CLONE_NEWUSER))
    yield attempt("become root", lambda: os.setuid(0))


def by_lock() -> Iterator[Check]:
    """What is denied after ``lock_down``."""
    yield attempt("fork", fork)
    yield attempt("spawn", lambda: os.posix_spawn(sys.executable, [sys.executable, "--version"], {}))
    yield attempt("exec", lambda: os.execv(sys.executable, [sys.executable, "--version"]))
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
        yield attempt(f"open a socket of {family.name}", partial(socket.socket, family))
    yield attempt("open a datagram pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    yield attempt("send out of band", out_of_band)
    yield attempt(
        "share memory without a file", lambda: mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    )
    yield attempt("cut the tie to the parent", lambda: libc_call("prctl", PR_SET_PDEATHSIG, 0, 0, 0, 0))
    yield attempt("raise a limit", raise_limit)
    for name, number in numbers(platform.machine(), DENIED).items():
        if name not in NOT_CALLED_BARE:
            yield attempt(f"call {name}", partial(bare_call, number))


def look(path: str) -> object:
    """List a folder or read a file."""
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, "rb") as file:
        return file.read(16)


def leave_mark(path: str) -> str:
    """Create a file in a folder, or open a file for writing."""
    target = os.path.join(path, "mark-of-the-self-test") if os.path.isdir(path) else path
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT))
    return target


def reach(family: socket.AddressFamily, address: object) -> str:
    """Connect a stream."""
    with socket.socket(family) as connection:
        connection.settimeout(2)
        connection.connect(address)  # type: ignore[arg-type] # either family's address
    return "a connection"


def none_of(things: set[str] | set[int]) -> set[str] | set[int]:
    """Nothing to be seen counts as a denial."""
    if not things:
        raise PermissionError("nothing there")
    return things


def others() -> set[int]:
    """Every process that /proc shows, except this one."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}


def open_fds() -> set[int]:
    """Every open descriptor; the one that lists them is gone when it is asked for."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue
        found.add(int(name))
    return found


def signal(pid: int) -> str:
    """Ask whether a process may be signalled; this process has number 1 of its own."""
    if pid == os.getpid():
        raise PermissionError("that number is this process")
    os.kill(pid, 0)
    return "a process"


def fork() -> int:
    """Fork, and end the child if there is one."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return child


def out_of_band() -> str:
    """Send an urgent byte to oneself."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(b"x", socket.MSG_OOB)
    return "a byte"


def raise_limit() -> str:
    """Ask for more descriptors than the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))
    return "a higher limit"


def libc_call(name: str, *args: object) -> int:
    """Call a function of the C library; raises what it reports."""
    result = int(getattr(ctypes.CDLL(None, use_errno=True), name)(*args))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def bare_call(number: int) -> str:
    """A system call with empty arguments: only a refusal is a denial, other errors show that it was reached."""
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    result = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    if result == -1 and ctypes.get_errno() in REFUSALS:
        raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return f"{result}, errno {ctypes.get_errno()}"


def main(questions: Questions) -> None:
    """Try everything and write the report."""
    checks = list(by_namespaces(questions))
    locked = lock_down()
    checks.append(Check(name="stay unlocked", denied=locked, detail=f"lock_down() was {locked}"))
    checks += by_lock()
    with socket.socket(fileno=questions.report_fd) as report:
        report.sendall(msgspec.json.encode(checks))


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Questions))
