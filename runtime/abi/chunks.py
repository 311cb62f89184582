"""Chunk groups: outputs that belong to one emission, assembled in one place for every reader."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from runtime.abi.entries import OUTPUT_PREFIX, Entry


class Emission(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of one group in their order; not ``final`` means truncated: the rest never came."""

    of: str
    channel: str
    entries: list[Entry]
    final: bool

    @property
    def text(self) -> str:
        """The words of its text outputs, joined."""
        return "".join(e.data.content for e in self.entries if e.type == "cognet:output:text")  # type: ignore[union-attr]  # the type says so


class ChunkFold:
    """Feed it entries in ``seq`` order; it tells each group as it closes, and which are still open."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], list[Entry]] = {}

    def feed(self, entry: Entry) -> Emission | None:
        """The group that this entry closes; an output without a chunk is a group of one; None otherwise."""
        if not entry.type.startswith(OUTPUT_PREFIX):
            return None
        data = entry.data
        channel, chunk = data.channel, data.chunk  # type: ignore[union-attr]  # every output has both
        if chunk is None:
            return Emission(of=entry.id, channel=channel, entries=[entry], final=True)
        group = self._open.setdefault((channel, chunk.of), [])
        group.append(entry)
        if not chunk.final:
            return None
        del self._open[channel, chunk.of]
        return Emission(of=chunk.of, channel=channel, entries=group, final=True)

    def truncated(self) -> list[Emission]:
        """The groups no ``final`` has closed so far, oldest first."""
        return [
            Emission(of=of, channel=channel, entries=list(entries), final=False)
            for (channel, of), entries in self._open.items()
        ]


def assemble(entries: Iterable[Entry]) -> list[Emission]:
    """Every emission in the entries: those that closed, in the order they did, then the truncated."""
    fold = ChunkFold()
    closed = [emission for entry in entries if (emission := fold.feed(entry)) is not None]
    return closed + fold.truncated()
