"""A periodic timer of the Linux kernel (``timerfd``) on CLOCK_MONOTONIC with absolute deadlines."""

from __future__ import annotations

import ctypes
import os
import struct

NS = 1_000_000_000
_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1
_EXPIRATIONS = struct.Struct("=Q")


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


class TimerFd:
    """Expires at ``first_ns``, then every ``interval_ns``; readable when it has.

    Python has this in ``os`` from 3.13; this works from 3.11.
    """

    def __init__(self, *, first_ns: int, interval_ns: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._checked(self._libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
        spec = _Itimerspec(_Timespec(*divmod(interval_ns, NS)), _Timespec(*divmod(first_ns, NS)))
        try:
            self._checked(self._libc.timerfd_settime(self.fd, _ABSOLUTE, ctypes.byref(spec), None))
        except OSError:
            self.close()
            raise

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"timerfd: {os.strerror(number)}")
        return result

    def expirations(self) -> int:
        """How often it expired since the last call; 0 if it didn't."""
        try:
            return int(_EXPIRATIONS.unpack(os.read(self.fd, 8))[0])
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
