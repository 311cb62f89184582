"""The session's entries as a lazy sequence: resident ones from the window, older ones page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from runtime.abi.entries import Entry, decode, decode_page
from runtime.abi.errors import CallInvalid
from runtime.brain.pages import PAGE_ENTRIES, Pages
from runtime.brain.window import Window


class Reads:
    """How many entries were read through the store."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Start:
    """Where readable entries begin; it moves while the brain runs, when the kernel retires the oldest."""

    __slots__ = ("first_seq",)

    def __init__(self, first_seq: int) -> None:
        self.first_seq = max(first_seq, 1)

    def first_after(self, after: int, *, upto: int) -> int:
        """The first entry to be given: where older ones were asked for, one that tells of them stands before all."""
        told = min(self.first_seq - 1, upto)
        return max(told, after + 1, 1)


class History(Sequence[Entry]):
    """Entries ``first`` to ``last`` in ``seq`` order, decoded as they are read.

    Where entries were retired, or lost to damage, the kernel gives one ``axon:system:message`` in the place of the
    last of them; when more are retired while this is read, their places can't be indexed any more.

    Iterating is what is fast; an index or a slice is as cheap as the place it names. Its end doesn't
    move: entries admitted later are not in it.
    """

    def __init__(self, *, window: Window, pages: Pages, reads: Reads, start: Start, first: int, last: int) -> None:
        self._start = start
        self._window = window
        self._pages = pages
        self._reads = reads
        self._first = first
        self._last = max(last, first - 1)
        self._cached: tuple[int, list[Entry]] = (0, [])

    def __len__(self) -> int:
        return self._last - self._first + 1

    def __iter__(self) -> Iterator[Entry]:
        seq = self._first
        while seq <= self._last:
            batch = self._resident(seq) or self._paged(seq)
            if not batch:
                return
            self._reads.count += len(batch)
            seq = batch[-1].seq + 1
            yield from batch

    def _resident(self, seq: int) -> list[Entry] | None:
        """A batch from the window, None when ``seq`` isn't there."""
        last = min(self._last, self._window.resident_upto, seq + PAGE_ENTRIES - 1)
        bodies = self._window.bodies(seq, last) if last >= seq >= self._start.first_seq else None
        return None if bodies is None else decode_page(b"[" + b",".join(bodies) + b"]", seq)

    def _paged(self, seq: int) -> list[Entry]:
        """A batch over the page socket, no further than to where the window takes over."""
        window = self._window
        before_window = window.first_seq - 1 if seq < window.first_seq <= window.resident_upto else self._last
        page = self._pages.read(seq - 1, min(self._last, before_window), ahead=True)
        return decode_page(page.bodies, page.first_seq) if page.count else []

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self)))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"entry {index} of {len(self)}")
        return self._at(self._first + place)

    def _slice(self, start: int, stop: int, step: int) -> Sequence[Entry]:
        if step != 1:
            return [self._at(self._first + place) for place in range(start, stop, step)]
        return History(
            window=self._window,
            pages=self._pages,
            reads=self._reads,
            start=self._start,
            first=self._first + start,
            last=self._first + stop - 1,
        )

    def _at(self, seq: int) -> Entry:
        bodies = self._window.bodies(seq, seq) if seq >= self._start.first_seq else None
        if bodies is not None:
            return decode(bodies[0], seq)
        page_after = (seq - 1) // PAGE_ENTRIES * PAGE_ENTRIES
        if self._cached[0] != page_after or not self._cached[1]:
            self._cached = (page_after, self._range(page_after, min(page_after + PAGE_ENTRIES, self._last)))
        for entry in self._cached[1]:
            if entry.seq == seq:
                return entry
        self._cached = (0, [])
        raise IndexError(f"entry {seq} isn't readable any more")

    def _range(self, after: int, upto: int) -> list[Entry]:
        """Entries of that range, in as many pages as the kernel makes of them."""
        entries: list[Entry] = []
        while after < upto and (page := self._pages.read(after, upto)).count:
            entries += decode_page(page.bodies, page.first_seq)
            after = entries[-1].seq
        return entries

    def __eq__(self, other: object) -> bool:
        """The model is the log: a list of folded entries can be compared with this."""
        if not isinstance(other, list | tuple | History):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as for a list: equal by content

    def __repr__(self) -> str:
        return f"<{len(self)} entries, seq {self._first} to {self._last}>"


class Session:
    """The read side of the session log: ``kernel.store.session``."""

    def __init__(self, *, window: Window, pages: Pages, first_seq: int) -> None:
        self.reads = Reads()
        self._window = window
        self._pages = pages
        self._start = Start(first_seq)

    def retire(self, first_seq: int) -> None:
        """Entries before ``first_seq`` are gone from now on."""
        self._start.first_seq = max(first_seq, self._start.first_seq)

    def get(self, *, after: int | None = None, upto: int | None = None) -> History:
        """Entries newer than ``after`` (default: all), none above ``upto``, in ``seq`` order; never waits.

        Where some of them were retired, it begins with an ``axon:system:message`` of type ``retention`` in the place
        of the last of those, which names the range and its chain.
        """
        for cursor in (after, upto):
            if cursor is not None and (not isinstance(cursor, int) or isinstance(cursor, bool)):
                raise CallInvalid(f"kernel.store.session.get takes whole numbers, not {cursor!r}")
        last = self._window.last_seq if upto is None else min(upto, self._window.last_seq)
        return History(
            window=self._window,
            pages=self._pages,
            reads=self.reads,
            start=self._start,
            first=self._start.first_after(after or 0, upto=last),
            last=last,
        )
