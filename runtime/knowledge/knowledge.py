"""An agent's whole knowledge: its own store, which may be changed, and its modules' corpora, which may not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from runtime.abi.errors import KnowledgeEscape, KnowledgeNotFound, KnowledgeUnreadable, KnowledgeUnwritable
from runtime.abi.knowledge import KnowledgeEntry
from runtime.durable.files import BEGUN, make_folder, remove_durable_in
from runtime.durable.locks import FileLock
from runtime.knowledge.catalogue import Catalogue
from runtime.knowledge.corpus import Corpus
from runtime.knowledge.lookalikes import find_look_alike
from runtime.knowledge.name import parts_of, shown
from runtime.knowledge.places import corpora, store_folder

LOCK = "knowledge.lock"
"""In ``data/``, where no sandbox reaches: a brain that could hold it would keep everybody from writing."""
WAIT_S = 10.0


class Knowledge:
    """Entries by name. Everything blocks; reading and writing may be done by two threads at once.

    A module's corpus has the names ``<module>/...``, and what the store has under such a name is out of sight.
    """

    def __init__(self, agent: Path) -> None:
        agent = agent.resolve()
        self._data = agent / "data"
        self._own = Corpus(store_folder(agent))
        self._modules = {name: Corpus(folder) for name, folder in corpora(agent).items()}
        self._catalogue = Catalogue(self._own.root)
        self._catalogues = [Catalogue(c.root, prefix=f"{name}/") for name, c in self._modules.items()]

    def entries(self, *, match: str = "", limit: int | None = None) -> list[KnowledgeEntry]:
        """The catalogue ordered by name, bytewise; ``match`` is sought in names and descriptions, case aside."""
        return chosen(self.catalogue(), match=match, limit=limit)

    def catalogue(self) -> list[KnowledgeEntry]:
        """All of it, in order."""
        found = [entry for entry in self._catalogue.entries() if not self._is_hidden(entry.name.partition("/")[0])]
        for catalogue in self._catalogues:
            found += catalogue.entries()
        found.sort(key=lambda entry: entry.name)  # Python orders by code point, which is the order of UTF-8's bytes
        return found

    def read(self, name: str) -> str:
        """The content of an entry as it is, line ends included."""
        parts = parts_of(name)
        corpus, inner = self._find(parts)
        data = corpus.read(inner)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            at = error.start
            raise KnowledgeUnreadable(f"{shown(name)} isn't UTF-8 (byte {at})", name=shown(name), byte=at) from error

    def read_bytes(self, name: str) -> bytes:
        """The bytes of an entry, whatever they are and however many."""
        corpus, inner = self._find(parts_of(name))
        return corpus.read(inner, most=None)

    def write(self, name: str, data: bytes) -> None:
        """Replace or make an entry; returns when it is durable."""
        parts = self._own_parts(name)
        with self._alone():
            self._own.write(parts, data)

    def remove(self, name: str) -> bool:
        """Remove an entry; False when there was none."""
        parts = self._own_parts(name)
        with self._alone():
            return self._own.remove(parts)

    def odd(self) -> list[tuple[str, str]]:
        """Everything in the folders that isn't as it should be: its path, and what it is."""
        found: list[tuple[str, str]] = []
        for catalogue in [self._catalogue, *self._catalogues]:
            catalogue.odd(partial(_note, found, catalogue.root))
        for name in sorted(os.listdir(self._own.root)) if self._own.root.is_dir() else ():
            if self._is_hidden(name):
                _note(found, self._own.root, name, "is out of sight: a module's corpus has that name, or looks like it")
        return found

    def sweep(self) -> None:
        """Remove what cuts in the middle of a write left in the store."""
        with self._alone():
            for _, _, files, folder in os.fwalk(self._own.root, follow_symlinks=False):
                for name in files:
                    if name.startswith(BEGUN):
                        remove_durable_in(folder, name)

    def _find(self, parts: tuple[str, ...]) -> tuple[Corpus, tuple[str, ...]]:
        """Whose name it is, and the name there."""
        if module := self._modules.get(parts[0]):
            if len(parts) == 1:
                raise KnowledgeNotFound(f"{shown(parts[0])} is a module's corpus, not an entry", name=shown(parts[0]))
            return module, parts[1:]
        self._check_look(parts[0])
        return self._own, parts

    def _own_parts(self, name: str) -> tuple[str, ...]:
        """The parts of a name that may be written; ``KnowledgeEscape`` for a module's."""
        parts = parts_of(name)
        if parts[0] in self._modules:
            raise KnowledgeEscape(
                f"{shown(name)} belongs to the module {parts[0]!r}, whose knowledge is read-only",
                hint="Write under another name; a module's corpus changes with the module.",
                name=shown(name),
            )
        self._check_look(parts[0])
        return parts

    def _check_look(self, first: str) -> None:
        if other := find_look_alike(first, self._modules):
            raise KnowledgeEscape(f"{shown(first)} looks like the module {shown(other)}", name=shown(first))

    def _is_hidden(self, first: str) -> bool:
        return first in self._modules or find_look_alike(first, self._modules) is not None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time, in whatever process: a look at the names and the change that follows are one act."""
        try:
            make_folder(self._data)
            lock = FileLock(self._data / LOCK)
            held = lock.acquire(wait_s=WAIT_S)
        except OSError as error:
            raise KnowledgeUnwritable(f"{self._data / LOCK} can't be locked: {error.strerror}") from error
        if not held:
            raise KnowledgeUnwritable(f"somebody else has been writing for {WAIT_S:.0f} s", hint="Try again.")
        try:
            yield
        finally:
            lock.release()


def chosen(catalogue: list[KnowledgeEntry], *, match: str, limit: int | None) -> list[KnowledgeEntry]:
    """The entries that have ``match`` in name or description, the first ``limit`` of them."""
    wanted = match.casefold()
    if wanted:
        catalogue = [e for e in catalogue if wanted in e.name.casefold() or wanted in e.description.casefold()]
    return catalogue[:limit]


def _note(found: list[tuple[str, str]], root: Path, name: str, why: str) -> None:
    found.append((f"{root}/{name}", why))
