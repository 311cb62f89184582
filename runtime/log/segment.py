"""The file of sealed entries: compressed blocks, an index of them, and the chain at both ends.

The layout is specified in ``docs/event-log.md``. A file is written once, durable before the log notes it, and stays.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from runtime.abi.errors import LogDamaged
from runtime.log import chain
from runtime.log.chain import Raw

MAGIC = b"AXONSEG1"
FORMAT = 1
BLOCK_ENTRIES = 256
LEVEL = 6  # of zlib: a tenth less than level 1, and a day's entries still take a minute of one core
TRAILER = struct.Struct(">QQ32s32s8s")  # where the footer is, its size, its digest, the digest of all before, magic
MAX_FOOTER_BYTES = 64 * 1024 * 1024
_TYPE_AT = len(b'{"type":"')


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Where a block lies, and the chain before its first entry."""

    at: int
    size: int
    before: bytes


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds: entries ``first`` to ``last``, ``before`` and ``chain`` being the chain at its ends."""

    format: int
    session_id: str
    first: int
    last: int
    before: bytes
    chain: bytes
    body_bytes: int
    block_entries: int
    types: dict[str, int]  # the last entry of each type
    blocks: list[Block]


class Piece(msgspec.Struct, frozen=True):
    """A block that was read and holds: bodies in one piece, a comma between them."""

    first: int
    before: bytes
    lengths: list[int]
    bodies: bytes

    @property
    def last(self) -> int:
        """Its last entry."""
        return self.first + len(self.lengths) - 1

    def part(self, first: int, last: int) -> tuple[int, bytes]:
        """How many entries of that range are in here, and their bodies."""
        low, high = max(first - self.first, 0), min(last - self.first + 1, len(self.lengths))
        if low >= high:
            return 0, b""
        start = sum(self.lengths[:low]) + low
        end = start + sum(self.lengths[low:high]) + high - low - 1
        return high - low, self.bodies[start:end]

    def raws(self) -> list[Raw]:
        """The entries as rows, their chain computed again."""
        rows: list[Raw] = []
        at, link = 0, self.before
        for seq, length in enumerate(self.lengths, self.first):
            body = self.bodies[at : at + length]
            link = chain.extend(link, seq=seq, body=body)
            rows.append((seq, type_of(body), body, link))
            at += length + 1
        return rows


def type_of(body: bytes) -> bytes:
    """The type that a body begins with."""
    return body[_TYPE_AT : body.index(b'"', _TYPE_AT)]


def file_name(first: int, last: int) -> str:
    """Names sort as the entries do."""
    return f"{first:016d}-{last:016d}.seg"


def range_of(name: str) -> tuple[int, int] | None:
    """The entries a file's name promises; None when it is no segment's name."""
    numbers = name.removesuffix(".seg").split("-")
    if not name.endswith(".seg") or len(numbers) != 2 or not all(part.isdecimal() for part in numbers):
        return None
    return int(numbers[0]), int(numbers[1])


def write(file: BinaryIO, blocks: Iterable[list[Raw]], *, session_id: str, before: bytes) -> tuple[Footer, bytes]:
    """Write a segment of these blocks, each of ``BLOCK_ENTRIES`` rows but the last; returns footer and digest.

    Rows are checked against the chain on their way: what doesn't hold raises ``LogDamaged`` and is never sealed.
    """
    total = hashlib.sha256(MAGIC)
    file.write(MAGIC)
    at, first, last, link, body_bytes = len(MAGIC), 0, 0, before, 0
    index: list[Block] = []
    types: dict[str, int] = {}
    for rows in blocks:
        first = first or rows[0][0]
        following = chain.check(rows, after=last or first - 1, previous=link)
        packed = zlib.compress(_pack([row[2] for row in rows]), LEVEL)
        index.append(Block(at, len(packed), link))
        file.write(packed)
        total.update(packed)
        at, last, link = at + len(packed), rows[-1][0], following
        body_bytes += sum(len(row[2]) for row in rows)
        types.update({row[1].decode(): row[0] for row in rows})
    footer = Footer(
        format=FORMAT,
        session_id=session_id,
        first=first,
        last=last,
        before=before,
        chain=link,
        body_bytes=body_bytes,
        block_entries=BLOCK_ENTRIES,
        types=types,
        blocks=index,
    )
    return footer, _end(file, total, footer, at)


def _pack(bodies: list[bytes]) -> bytes:
    return struct.pack(f">I{len(bodies)}I", len(bodies), *map(len, bodies)) + b",".join(bodies)


def _end(file: BinaryIO, total: hashlib._Hash, footer: Footer, at: int) -> bytes:
    """Footer and trailer; returns the digest of all that comes before it."""
    encoded = msgspec.msgpack.encode(footer)
    total.update(encoded)
    total.update(struct.pack(">QQ32s", at, len(encoded), chain.digest(encoded)))
    file.write(encoded)
    file.write(TRAILER.pack(at, len(encoded), chain.digest(encoded), total.digest(), MAGIC))
    return total.digest()


def read_footer(path: Path) -> Footer:
    """What the file holds. Raises ``FileNotFoundError``, ``OSError``, ``LogDamaged``."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        at, length, digest, _, magic = TRAILER.unpack(_exactly(file, TRAILER.size, size - TRAILER.size, path))
        if magic != MAGIC or at + length + TRAILER.size != size or length > MAX_FOOTER_BYTES:
            raise damaged(path, "its end isn't what was written")
        encoded = _exactly(file, length, at, path)
    finally:
        os.close(file)
    if chain.digest(encoded) != digest:
        raise damaged(path, "its index isn't what was written")
    try:
        footer = msgspec.msgpack.decode(encoded, type=Footer)
    except msgspec.MsgspecError as error:
        raise damaged(path, f"its index can't be read: {error}") from error
    if footer.format != FORMAT:
        raise damaged(path, f"it has format {footer.format}; this release reads {FORMAT}")
    return footer


def read_block(path: Path, footer: Footer, seq: int) -> Piece:
    """The block that holds ``seq``, checked against the chain. Raises ``FileNotFoundError``, ``LogDamaged``."""
    number = (seq - footer.first) // footer.block_entries
    block = footer.blocks[number]
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        packed = _exactly(file, block.size, block.at, path)
    finally:
        os.close(file)
    first = footer.first + number * footer.block_entries
    count = min(footer.block_entries, footer.last - first + 1)
    after = footer.blocks[number + 1].before if number + 1 < len(footer.blocks) else footer.chain
    try:
        raw = zlib.decompress(packed)
        lengths = list(struct.unpack_from(f">{struct.unpack_from('>I', raw)[0]}I", raw, 4))
    except (zlib.error, struct.error) as error:
        raise damaged(path, f"the block of entry {first} can't be read: {error}", seq=first) from error
    bodies = raw[4 + 4 * count :]
    whole = len(lengths) == count and sum(lengths) + count - 1 == len(bodies)
    if not whole or chain.follow(block.before, after=first - 1, bodies=bodies, lengths=lengths) != after:
        raise damaged(path, f"the block of entry {first} isn't what was written", seq=first)
    return Piece(first, block.before, lengths, bodies)


def check_file(path: Path) -> tuple[Footer, bytes]:
    """Read all of a file: its footer and its digest. Raises ``LogDamaged`` when that isn't the one it carries."""
    footer = read_footer(path)
    total = hashlib.sha256()
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        left = os.fstat(file).st_size - 40  # the digest and the magic
        while left > 0:
            data = os.read(file, min(left, 1 << 20))
            if not data:
                raise damaged(path, "it is shorter than it was")
            total.update(data)
            left -= len(data)
        if os.read(file, 32) != total.digest():
            raise damaged(path, "its digest isn't that of its bytes")
    finally:
        os.close(file)
    return footer, total.digest()


def damaged(path: Path, what: str, *, seq: int | None = None) -> LogDamaged:
    """The error for a file that isn't what was written; ``seq`` defaults to the first its name promises."""
    promised = range_of(path.name)
    seq = seq or (promised[0] if promised else 0)
    return LogDamaged(f"segment {path.name}: {what}", seq=seq, segment=path.name)


def _exactly(file: int, size: int, at: int, path: Path) -> bytes:
    data = os.pread(file, size, at) if at >= 0 else b""
    if len(data) != size:
        raise damaged(path, "it is shorter than it was")
    return data
