"""The segment files of a session, read block by block; any thread, any process, beside whoever seals and retires."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from runtime.log import segment
from runtime.log.catalog import Gap, Sealed
from runtime.log.segment import Footer, Piece, damaged

FOLDER = "segments"
FOOTERS = 8


class Archive:
    """Reads blocks and remembers the indexes of the files last read."""

    def __init__(self, session: Path) -> None:
        self.folder = session / FOLDER
        self._footers: OrderedDict[str, Footer] = OrderedDict()
        self._lock = threading.Lock()

    def piece(self, sealed: Sealed, seq: int) -> Piece:
        """The block with that entry. Raises ``LogDamaged``; ``FileNotFoundError`` when it may have been retired."""
        return segment.read_block(self.folder / sealed.name, self._footer(sealed), seq)

    def chain_at(self, piece: Sealed | Gap, seq: int) -> bytes | None:
        """The chain up to an entry; None when it can't be read any more. Raises as ``piece``."""
        if seq == piece.last:
            return piece.chain
        return None if isinstance(piece, Gap) else self.piece(piece, seq).raws()[seq - self._start(piece, seq)][3]

    def before(self, piece: Sealed | Gap, after: int) -> bytes:
        """The chain that what follows ``after`` in a piece must fit; a gap says nothing of what was before it."""
        if after + 1 == piece.first and isinstance(piece, Sealed):
            return piece.before
        return self.chain_at(piece, after) or piece.chain

    def _start(self, sealed: Sealed, seq: int) -> int:
        return seq - (seq - sealed.first) % self._footer(sealed).block_entries

    def _footer(self, sealed: Sealed) -> Footer:
        with self._lock:
            footer = self._footers.get(sealed.name)
        if footer is None:
            path = self.folder / sealed.name
            footer = segment.read_footer(path)
            ends = (footer.first, footer.last, footer.before, footer.chain)
            if ends != (sealed.first, sealed.last, sealed.before, sealed.chain):
                raise damaged(path, "it isn't the one that was noted")
        with self._lock:
            self._footers[sealed.name] = footer
            self._footers.move_to_end(sealed.name)
            while len(self._footers) > FOOTERS:
                self._footers.popitem(last=False)
        return footer
