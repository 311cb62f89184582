"""What an ended process left in the write-ahead log, seen before SQLite decides how much of it holds.

SQLite stops at the first frame whose checksum fails and says nothing about those behind it. A cut leaves at most one
commit behind such a frame, the one that was being written; anything else there was durable once.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import msgspec

from runtime.durable.database import wal_path

HEADER = struct.Struct(">8I")  # magic, version, page size, sequence, two salts, two checksums
FRAME = struct.Struct(">6I")  # page, size of the database for a commit, two salts, two checksums
MAGIC = (0x377F0682, 0x377F0683)
PAGE_BYTES = 4096


class Frame(msgspec.Struct, frozen=True):
    """The head of one frame."""

    page: int
    commit: int
    salts: tuple[int, int]


class WalLeft(msgspec.Struct, frozen=True, kw_only=True):
    """The file's header and the heads of its frames."""

    header_holds: bool
    salts: tuple[int, int]
    frames: list[Frame]

    def lost(self, *, valid_frames: int) -> str | None:
        """What SQLite, which took ``valid_frames`` of them, left out; None when nothing that was committed."""
        if not self.frames:
            return None
        if not self.header_holds:
            first = self.frames[0].salts
            begun_anew = self.salts[0] != first[0] and self.salts[1] != first[1]  # all of it was copied before
            return None if begun_anew else "the write-ahead log's header doesn't hold; its commits may be lost"
        commits = self.commits_behind(valid_frames)
        if commits == 0:
            return None
        if commits == 1:
            return "the last commit in the write-ahead log doesn't hold and was left out"
        return f"the write-ahead log doesn't hold from frame {valid_frames + 1} on; {commits} commits were left out"

    def is_of_a_cut(self, *, valid_frames: int) -> bool:
        """Whether a cut alone leaves such a file: one commit behind those that hold, at most."""
        return bool(self.frames) and self.header_holds and self.commits_behind(valid_frames) <= 1

    def commits_behind(self, valid_frames: int) -> int:
        """Commits beyond the frames that hold; a commit's last frame is repeated once to fill a disk block."""
        before = self.frames[valid_frames - 1] if 0 < valid_frames <= len(self.frames) else None
        count, run = 0, 1 if before is not None and before.commit else 0
        for frame in self.frames[valid_frames:]:
            if frame.salts != self.salts:
                before = None
                continue
            if frame.commit:
                again = before is not None and (before.page, before.commit) == (frame.page, frame.commit)
                run = run + 1 if again else 1
                count += run % 2
            before = frame
        return count


def scan(path: Path) -> WalLeft:
    """Read the heads in the write-ahead log of a database that nobody in this process has open."""
    try:
        file = os.open(wal_path(path), os.O_RDONLY)
    except FileNotFoundError:
        return WalLeft(header_holds=False, salts=(0, 0), frames=[])
    try:
        head = os.pread(file, HEADER.size, 0)
        if len(head) < HEADER.size:
            return WalLeft(header_holds=False, salts=(0, 0), frames=[])
        fields = HEADER.unpack(head)
        size, step = os.fstat(file).st_size, FRAME.size + PAGE_BYTES
        heads = [FRAME.unpack(os.pread(file, FRAME.size, at)) for at in range(HEADER.size, size - step + 1, step)]
    finally:
        os.close(file)
    return WalLeft(
        header_holds=_holds(head, fields),
        salts=(fields[4], fields[5]),
        frames=[Frame(page, commit, (one, two)) for page, commit, one, two, _, _ in heads],
    )


def _holds(head: bytes, fields: tuple[int, ...]) -> bool:
    """The header's own checksum, as SQLite computes it."""
    if fields[0] not in MAGIC or fields[1] != 3007000 or fields[2] != PAGE_BYTES:
        return False
    one = two = 0
    words = struct.unpack((">" if fields[0] & 1 else "<") + "6I", head[:24])
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return (one, two) == fields[6:]
