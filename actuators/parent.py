"""Ending with the parent: an actuator whose kernel is gone takes its safe action, so it isn't simply killed."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> bool:
    """Have Linux send SIGTERM to this process when process ``parent`` ends; False if it is gone already.

    The signal follows the thread that started this process, and takes the place of the SIGKILL that a child of the
    kernel begins with.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return os.getppid() == parent
