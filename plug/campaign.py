"""Cut after cut: the product runs in a machine, the plug is pulled at a random moment, and the disk is judged."""

from __future__ import annotations

import random
import shutil
import sys
import time
from pathlib import Path

import msgspec

from plug.disk import Disk, from_file
from plug.guest import CACHE, Guest, make_ext4
from plug.machine import Machine
from plug.verdict import Verdict, judge

DISK_MB = 192
BOOT_S = 600
CUT_WITHIN_S = 4.0
RECOVERY_WITHIN_S = (2.0, 25.0)


# An emulated processor is some twenty times slower than a board's: fewer frames, and patience.
AXON_TOML = """
format = 1
[agent]
name = "plugged"
cognet = "reflex"
[[sensors]]
driver = "camera"
source = "synthetic"
fps = 4
[[sensors]]
driver = "microphone"
source = "synthetic"
fps = 5
[[sensors]]
driver = "host"
fps = 2
[brain]
heartbeat_s = 60
[media]
store = "disk"
[log]
seal_bytes = "1 MB"
min_free_bytes = 0
"""


class Cuts(msgspec.Struct, kw_only=True):
    """What a number of cuts came to."""

    cuts: int = 0
    acknowledged: int = 0
    lost: int = 0
    corrupt: int = 0
    examples: list[str] = []

    def add(self, verdict: Verdict) -> None:
        """Count one more."""
        self.cuts += 1
        self.acknowledged += verdict.acknowledged
        self.lost += len(verdict.lost)
        self.corrupt += bool(verdict.corrupt)
        self.examples = (self.examples + verdict.lost[:2] + verdict.corrupt[:2])[:10]


class Frozen(msgspec.Struct, frozen=True):
    """A machine in the middle of its work: memory in a file, its disk, and what had left it by then."""

    memory: Path
    disk: Disk
    lines: list[str]


class Campaign:
    """Cuts on one kind of guest."""

    def __init__(self, guest: Guest, *, seed: int) -> None:
        self._guest = guest
        self._random = random.Random(seed)
        self._folder = CACHE / f"campaign-{guest.architecture.name}-{seed}"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)

    def close(self) -> None:
        """Remove what the campaign needed."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def begin(self) -> Frozen:
        """A new agent's first boot, up to the moment when it serves and has acknowledged something."""
        return self._run_up(self._new_disk(), [])

    def go_on(self, disk: bytes | bytearray, lines: list[str]) -> Frozen:
        """The boot after a cut, on the disk that the cut left."""
        return self._run_up(Disk(bytearray(disk), seed=self._random.randrange(2**32)), lines)

    def cut_running(
        self, frozen: Frozen, *, ignored: float = 0.0, at_least_s: float = 0.0
    ) -> tuple[bytearray, list[str], Verdict]:
        """Thaw it, let it work for a random time, pull the plug, judge: the disk, what left the machine, the verdict.

        ``ignored`` is the share of flushes that the disk only confirms.
        """
        disk = frozen.disk.copy(seed=self._random.randrange(2**32), ignored=ignored)
        machine = Machine(self._guest, disk, self._folder / "machine", thaw=frozen.memory)
        try:
            time.sleep(at_least_s + self._random.uniform(0.0, CUT_WITHIN_S))
        finally:
            machine.pull()
        lines = frozen.lines + machine.lines()
        image = disk.cut()
        return image, lines, self.judge(image, lines)

    def cut_recovering(self, image: bytearray, lines: list[str]) -> tuple[bytearray, list[str], Verdict]:
        """Boot on what a cut left, and pull the plug again before or while the product recovers."""
        disk = Disk(bytearray(image), seed=self._random.randrange(2**32))
        machine = Machine(self._guest, disk, self._folder / "machine")
        try:
            machine.wait_for(lambda seen: any('"booted"' in line for line in seen), BOOT_S)
            deadline = time.monotonic() + self._random.uniform(*RECOVERY_WITHIN_S)
            while time.monotonic() < deadline and not any('"serving"' in line for line in machine.lines()):
                time.sleep(0.05)
        finally:
            machine.pull()
        image, lines = disk.cut(), lines + machine.lines()
        return image, lines, self.judge(image, lines)

    def judge(self, image: bytes | bytearray, lines: list[str]) -> Verdict:
        """What came back of what had left the machine."""
        return judge(image, lines, self._folder / "judged")

    def _new_disk(self) -> Disk:
        tree, path = self._folder / "tree", self._folder / "new.ext4"
        (tree / "agent").mkdir(parents=True)
        (tree / "agent" / "axon.toml").write_text(AXON_TOML)
        make_ext4(path, tree, megabytes=DISK_MB, journal=True)
        return from_file(path, seed=self._random.randrange(2**32))

    def _run_up(self, disk: Disk, lines: list[str]) -> Frozen:
        machine = Machine(self._guest, disk, self._folder / "machine")
        try:
            machine.wait_for(_works, BOOT_S)
            memory = self._folder / "memory"
            frozen_disk = machine.freeze(memory)
        except BaseException:
            machine.pull()
            raise
        return Frozen(memory, frozen_disk, lines + machine.lines())


def _works(lines: list[str]) -> bool:
    """It has acknowledged texts, outputs and every sensor's counters."""
    return all(any(word in line for line in lines) for word in ('"said"', '"output"', '"camera"', '"microphone"'))


def say(text: str) -> None:
    """Progress, beside the result."""
    print(text, file=sys.stderr, flush=True)


def progress(cuts: Cuts, what: str, began: float) -> None:
    """One line a cut."""
    each = (time.monotonic() - began) / max(1, cuts.cuts)
    say(
        f"{what}: {cuts.cuts} cuts, {cuts.acknowledged} acknowledged, {cuts.lost} lost, {cuts.corrupt} corrupt"
        f" ({each:.1f} s a cut)"
    )
