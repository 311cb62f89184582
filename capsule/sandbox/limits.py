"""What one sandboxed process may use at most."""

from __future__ import annotations

import resource

import msgspec

MIB = 1024 * 1024
MAPPED_BESIDE_BYTES = 768 * MIB  # libraries, and address space that malloc reserves without using it


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a guest; ``processes`` counts threads too, 0 leaves them unbounded."""

    memory_bytes: int = 512 * MIB
    open_files: int = 256
    processes: int = 64
    file_size_bytes: int = 64 * MIB
    scratch_bytes: int = 64 * MIB  # /tmp, and /dev/shm the same again

    def apply(self) -> None:
        """Bind the calling process, for good: soft and hard limits are the same.

        Memory is RLIMIT_DATA, which counts what is private and writable; RLIMIT_AS stands behind it for
        shared mappings, with room for address space that is only reserved.
        """
        bounds = {
            resource.RLIMIT_DATA: self.memory_bytes,
            resource.RLIMIT_AS: self.memory_bytes + MAPPED_BESIDE_BYTES,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_FSIZE: self.file_size_bytes,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
        }
        if self.processes:
            bounds[resource.RLIMIT_NPROC] = self.processes
        for which, wanted in bounds.items():
            _, hard = resource.getrlimit(which)
            bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(which, (bound, bound))
