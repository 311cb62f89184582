"""Dying with the parent: a driver must not go on publishing for a kernel that is gone."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> bool:
    """Have the Linux kernel end this process when process ``parent`` ends; False if it is gone already.

    The signal is SIGKILL: it must work on a driver that hangs in a device. It follows the thread that started
    this process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return os.getppid() == parent
