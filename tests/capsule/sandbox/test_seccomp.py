"""The filter gives each call the verdict of the tables, on both architectures; the numbers are libseccomp's."""

from __future__ import annotations

import ctypes
import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule.sandbox import seccomp
from capsule.sandbox.seccomp import Instruction, program
from capsule.sandbox.syscalls import ALLOWED, CHECKED, CHECKS, COLUMNS, DENIED, numbers

MACHINES = sorted(COLUMNS)
ALLOW = 0x7FFF0000
KILL = 0x80000000
EPERM = 0x00050000 | errno.EPERM
ENOSYS = 0x00050000 | errno.ENOSYS
WORD = st.integers(min_value=0, max_value=2**64 - 1)


def verdict(code: list[Instruction], *, arch: int, number: int, arguments: list[int]) -> int:
    """Run a filter as the kernel does; every jump goes forward, so it ends."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *arguments)
    accumulator, at = 0, 0
    while True:
        step = code[at]
        at += 1
        if step.code == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("<I", data, step.value)
        elif step.code == seccomp.AND:
            accumulator &= step.value
        elif step.code == seccomp.JUMP_EQUAL:
            at += step.yes if accumulator == step.value else step.no
        elif step.code == seccomp.JUMP_AT_LEAST:
            at += step.yes if accumulator >= step.value else step.no
        else:
            assert step.code == seccomp.RETURN
            return step.value


def ask(machine: str, number: int, *arguments: int) -> int:
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    return verdict(program(machine), arch=seccomp.AUDIT_ARCH[machine], number=number, arguments=padded)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_gets_the_verdict_of_its_table(machine: str) -> None:
    code, arch = program(machine), seccomp.AUDIT_ARCH[machine]
    allowed = set(numbers(machine, *ALLOWED).values())
    denied = set(numbers(machine, DENIED).values())
    checked = set(numbers(machine, CHECKED).values())
    for number in [*range(700), 2**30, 2**30 + 1, 2**31, 2**32 - 1]:
        if number not in checked:
            wanted = ALLOW if number in allowed else EPERM if number in denied else ENOSYS
            assert verdict(code, arch=arch, number=number, arguments=[0] * 6) == wanted, number


@given(machine=st.sampled_from(MACHINES), arch=st.integers(0, 2**32 - 1), number=st.integers(0, 2**32 - 1))
def test_another_architecture_is_killed(machine: str, arch: int, number: int) -> None:
    if arch != seccomp.AUDIT_ARCH[machine]:
        assert verdict(program(machine), arch=arch, number=number, arguments=[0] * 6) == KILL


@given(machine=st.sampled_from(MACHINES), name=st.sampled_from(sorted(CHECKS)), arguments=st.lists(WORD, min_size=6))
def test_arguments_decide_about_a_checked_call(machine: str, name: str, arguments: list[int]) -> None:
    fits = all(arguments[check.position] & check.mask in check.values for check in CHECKS[name])
    assert ask(machine, numbers(machine, CHECKED)[name], *arguments) == (ALLOW if fits else EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_thread_is_allowed_and_a_process_is_not(machine: str) -> None:
    clone = numbers(machine, CHECKED)["clone"]
    assert ask(machine, clone, 0x003D0F00) == ALLOW  # what pthread_create asks for
    assert ask(machine, clone, 0x01200011) == EPERM  # what fork asks for
    assert ask(machine, clone, 0x00004111) == EPERM  # what vfork asks for
    for namespace in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert ask(machine, clone, 0x003D0F00 | namespace) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_stream_pair_is_allowed_and_a_datagram_pair_is_not(machine: str) -> None:
    pair = numbers(machine, CHECKED)["socketpair"]
    cloexec_nonblock = 0o2004000
    assert ask(machine, pair, 1, 1 | cloexec_nonblock) == ALLOW
    assert ask(machine, pair, 1, 2 | cloexec_nonblock) == EPERM
    assert ask(machine, pair, 30, 1) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg"])
def test_nothing_is_sent_or_received_out_of_band(machine: str, name: str) -> None:
    number, out_of_band, no_signal_no_wait = numbers(machine, CHECKED)[name], 1, 0x4040
    position = 2 if name in ("sendmsg", "recvmsg") else 3
    before = [7] * position
    assert ask(machine, number, *before, no_signal_no_wait) == ALLOW
    assert ask(machine, number, *before, no_signal_no_wait | out_of_band) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_socket_takes_buffer_sizes_and_no_filter(machine: str) -> None:
    setsockopt, so_sndbuf, so_attach_filter, so_attach_bpf = numbers(machine, CHECKED)["setsockopt"], 7, 26, 50
    assert ask(machine, setsockopt, 3, 1, so_sndbuf) == ALLOW
    for option in (so_attach_filter, so_attach_bpf):
        assert ask(machine, setsockopt, 3, 1, option) == EPERM
    assert ask(machine, setsockopt, 3, 6, so_sndbuf) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_is_private_or_a_files(machine: str) -> None:
    mmap = numbers(machine, CHECKED)["mmap"]
    shared, private, anonymous, fixed_noreserve = 0x01, 0x02, 0x20, 0x4010
    for flags in (private, private | anonymous, shared, private | anonymous | fixed_noreserve):
        assert ask(machine, mmap, 0, 4096, 3, flags) == ALLOW
    for flags in (shared | anonymous, shared | private | anonymous, anonymous):
        assert ask(machine, mmap, 0, 4096, 3, flags) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_lies_in_one_table(machine: str) -> None:
    tables = [numbers(machine, table) for table in (*ALLOWED, CHECKED, DENIED)]
    assert len({name for table in tables for name in table}) == sum(map(len, tables))
    assert len({number for table in tables for number in table.values()}) == sum(map(len, tables))
    assert set(CHECKS) == set(numbers(machine, CHECKED))


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_fits_and_every_jump_lands_inside(machine: str) -> None:
    code = program(machine)
    assert len(code) <= 4096
    assert all(len(step.packed()) == 8 for step in code)
    assert all(at + 1 + max(step.yes, step.no) < len(code) for at, step in enumerate(code) if step.code & 7 == 5)


def libseccomp() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("libseccomp isn't installed: apt install libseccomp2")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_libseccomp(machine: str) -> None:
    resolve = libseccomp().seccomp_syscall_resolve_name_arch
    resolve.argtypes, resolve.restype = [ctypes.c_uint32, ctypes.c_char_p], ctypes.c_int
    ours = numbers(machine, *ALLOWED, CHECKED, DENIED)
    everywhere = {name for other in MACHINES for name in numbers(other, *ALLOWED, CHECKED, DENIED)}
    unknown_to_it = -1
    for name in sorted(everywhere):
        theirs = resolve(seccomp.AUDIT_ARCH[machine], name.encode())
        if theirs != unknown_to_it:
            assert ours.get(name) == (theirs if theirs >= 0 else None), name
