"""The first breath of a child process: die with the kernel, take the right cores, become the program.

Run as a plain script (``python -I -S child.py PARENT CORES PROGRAM ...``), so that the kernel never forks
Python code of its own and the death signal is set by the thread that lives as long as the child.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Set the death signal, check that the parent still lives, then exec."""
    parent, cores, *argv = sys.argv[1:]
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        os._exit(0)  # the kernel ended before the signal was set
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]} can't be run: {error.strerror}", file=sys.stderr)
        os._exit(127)


if __name__ == "__main__":
    main()
