"""The filter: a small assembler from the tables of ``syscalls`` to BPF, and its installation."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import TypeAlias

import msgspec

from capsule.errors import SandboxUnavailable
from capsule.sandbox.syscalls import (
    ALLOWED,
    CHECKED,
    CHECKS,
    COLUMNS,
    DENIED,
    DENIED_ERRNO,
    UNKNOWN_ERRNO,
    Argument,
    numbers,
)

AUDIT_ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
SECCOMP_NUMBER = {"x86_64": 317, "aarch64": 277}

LOAD, AND, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
OFFSET_NUMBER, OFFSET_ARCH, OFFSET_ARGUMENTS = 0, 4, 16
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000

PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER = 1
EVERY_THREAD, NO_SPECULATION_PENALTY = 1, 4


Verdict: TypeAlias = "int | tuple[Argument, ...]"  # what a call returns, or what its arguments must satisfy


class Instruction(msgspec.Struct, frozen=True):
    """One BPF instruction; ``yes`` and ``no`` are how many to skip."""

    code: int
    value: int
    yes: int = 0
    no: int = 0

    def packed(self) -> bytes:
        """As ``struct sock_filter``."""
        return struct.pack("=HBBI", self.code, self.yes, self.no, self.value)


def program(machine: str) -> list[Instruction]:
    """The whole filter of an architecture: any other one (32-bit calls, too) kills, then the call's verdict."""
    return [
        Instruction(LOAD, OFFSET_ARCH),
        Instruction(JUMP_EQUAL, AUDIT_ARCH[machine], 1, 0),
        Instruction(RETURN, KILL_PROCESS),
        Instruction(LOAD, OFFSET_NUMBER),
        *_search(_ranges(_verdicts(machine))),
    ]


def install(machine: str | None = None) -> None:
    """Bind every thread of this process to the filter, for good; raises ``SandboxUnavailable`` where it can't be."""
    machine = machine or platform.machine()
    if machine not in COLUMNS:
        raise SandboxUnavailable(f"there is no system-call table for {machine}", machine=machine)
    code = b"".join(instruction.packed() for instruction in program(machine))
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _refused("no_new_privs")
    flags = EVERY_THREAD | NO_SPECULATION_PENALTY
    if libc.syscall(SECCOMP_NUMBER[machine], SET_MODE_FILTER, flags, ctypes.c_char_p(filter_)) != 0:
        raise _refused("seccomp")


def _refused(what: str) -> SandboxUnavailable:
    reason = os.strerror(ctypes.get_errno())
    return SandboxUnavailable(f"the kernel refuses {what}: {reason}", hint="It needs CONFIG_SECCOMP_FILTER.")


def _verdicts(machine: str) -> dict[int, Verdict]:
    verdicts: dict[int, Verdict] = dict.fromkeys(numbers(machine, *ALLOWED).values(), ALLOW)
    verdicts |= dict.fromkeys(numbers(machine, DENIED).values(), ERRNO | DENIED_ERRNO)
    verdicts |= {number: CHECKS[name] for name, number in numbers(machine, CHECKED).items()}
    return verdicts


def _ranges(verdicts: dict[int, Verdict]) -> list[tuple[int, Verdict]]:
    """Where each run of calls with one verdict begins; what is between and after them is unknown."""
    unknown = ERRNO | UNKNOWN_ERRNO
    ranges: list[tuple[int, Verdict]] = []
    for number in range(max(verdicts) + 2):
        verdict = verdicts.get(number, unknown)
        if not ranges or ranges[-1][1] != verdict:
            ranges.append((number, verdict))
    return ranges


def _search(ranges: list[tuple[int, Verdict]]) -> list[Instruction]:
    """A binary search over the ranges, as the number lies in the accumulator."""
    if len(ranges) == 1:
        verdict = ranges[0][1]
        return [Instruction(RETURN, verdict)] if isinstance(verdict, int) else _checked(verdict)
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    return [Instruction(JUMP_AT_LEAST, ranges[middle][0], len(below), 0), *below, *above]


def _checked(arguments: tuple[Argument, ...]) -> list[Instruction]:
    """Compare the low halves of the arguments (both architectures are little-endian)."""
    steps: list[Instruction] = []
    for argument in arguments:
        steps += [Instruction(LOAD, OFFSET_ARGUMENTS + 8 * argument.position), Instruction(AND, argument.mask)]
        left = len(argument.values)
        steps += [Instruction(JUMP_EQUAL, value, left - number, 0) for number, value in enumerate(argument.values)]
        steps.append(Instruction(RETURN, ERRNO | DENIED_ERRNO))
    return [*steps, Instruction(RETURN, ALLOW)]
