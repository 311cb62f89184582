"""A damaged log is set aside and what holds of it becomes the new one; every step of that is cut."""

from __future__ import annotations

import random
from pathlib import Path

from crash.boot import Damage
from crash.cuts import State
from crash.recording import Recording, read_tree
from crash.scenarios.again import dry_run, emptied, recorded_boot
from crash.scenarios.entries import entries
from crash.scenarios.months import months
from runtime.log.reader import LogReader
from runtime.log.recovery import VANISHED

PAGE_BYTES = 4096
TRIES = 50


def salvage(root: Path, rng: random.Random) -> Recording:
    """The first boot on a damaged log, with some more entries; all that holds was promised."""
    for _ in range(TRIES):
        recording = rng.choice((entries, months))(emptied(root), rng)
        files, retired = read_tree(root), _retired(root)
        path = next(name for name in files if name.endswith("/log.db"))
        files[path] = _damaged(files[path], rng)
        state = _state(files, recording)
        if dry_run(root, state).set_aside:
            aside = {"log.db.damaged-1": files[path] or VANISHED}
            if files.get(f"{path}-wal"):
                aside["log.db.damaged-1-wal"] = files[f"{path}-wal"]
            return recorded_boot(root, state, recording, rng, damage=Damage(aside=aside, retired=retired))
    raise AssertionError("no damage was found")


def _retired(root: Path) -> int:
    """How many of the oldest entries retention has removed."""
    (session,) = (root / "sessions").iterdir()
    return LogReader(session).catalog().retired


def _state(files: dict[str, bytes], recording: Recording) -> State:
    folders = {parent.as_posix() for name in files for parent in Path(name).parents if parent.name}
    note = next(each.note for each in reversed(recording.operations) if each.kind == "note")
    return State(
        files=files, folders=sorted(folders), digest=b"", cut="damaged", operation=len(recording.operations), note=note
    )


def _damaged(content: bytes, rng: random.Random) -> bytes:
    """A flipped bit, a page of zeros or of noise, or a file that ends too early."""
    changed, how = bytearray(content), rng.random()
    at = rng.randrange(len(content)) // PAGE_BYTES * PAGE_BYTES
    if how < 0.4:
        changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif how < 0.6:
        changed[at : at + PAGE_BYTES] = bytes(PAGE_BYTES)
    elif how < 0.8:
        changed[at : at + PAGE_BYTES] = rng.randbytes(PAGE_BYTES)
    else:
        del changed[at + rng.choice((0, 512, 2048)) :]
    return bytes(changed)
