"""A cognet's private store: one durable file a key, each remembering the log it stood on; a cache, never the truth."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import msgspec

from capsule.errors import AxonError
from runtime.abi.errors import StorageFailed, StoreKeyUndeclared, StoreValueInvalid
from runtime.abi.link import Call
from runtime.abi.plain import check_plain
from runtime.config.store import SESSION
from runtime.durable.files import make_folder, write_durable
from runtime.kernel.brain_link import Verb, arguments
from runtime.log.log import Log

MAX_BYTES = 8 * 1024 * 1024
ATTEMPTS = 10


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a key: the value, and the entry it stood on (``session``, ``seq`` and its chain hash)."""

    value: Any
    session: str
    seq: int
    chain: str


class Store:
    """``get`` gives None for what is absent, unreadable, of another type, or ahead of the log; ``set`` is durable."""

    def __init__(self, folder: Path, *, declared: dict[str, Any], session_id: str, log: Log) -> None:
        self._folder = folder
        self._declared = declared
        self._session_id = session_id
        self._log = log
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._order = asyncio.Lock()

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may ask."""
        return {"store.get": self._serve_get, "store.set": self._serve_set}

    async def _serve_get(self, call: Call, _: Callable[[Any], None]) -> Any:
        (key,) = arguments(call, tuple[str])
        return await self.get(key)

    async def _serve_set(self, call: Call, _: Callable[[Any], None]) -> None:
        key, value = arguments(call, tuple[str, Any])
        await self.set(key, value)

    async def get(self, key: str) -> Any:
        """The value, or None: rebuild it from the log."""
        kind, path = self._find(key)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, path, kind)

    async def set(self, key: str, value: Any) -> None:
        """Resolves once value and the entries it stands on are durable; the last call of a key is what stays."""
        kind, path = self._find(key)
        seq = self._log.last_seq
        run = asyncio.get_running_loop().run_in_executor
        async with self._order:
            encoded = await run(self._thread, _encoded, key, value, kind)
            await self._log.durable(seq)
            writing = run(self._thread, self._write, path, encoded, seq)
        await writing

    def close(self) -> None:
        """Finish what was begun."""
        self._thread.shutdown(wait=True)

    def _find(self, key: str) -> tuple[Any, Path]:
        """The declared type and the file of a key."""
        if not isinstance(key, str) or key not in self._declared:
            known = ", ".join(sorted(self._declared)) or "none"
            raise StoreKeyUndeclared(f"the store key {key!r} isn't declared (declared: {known})", key=str(key))
        name = re.sub(r"[^A-Za-z0-9._-]", "_", key.replace(SESSION, self._session_id))
        return self._declared[key], self._folder / f"{name}.json"

    def _read(self, path: Path, kind: Any) -> Any:
        try:
            kept = msgspec.json.decode(path.read_bytes(), type=Kept)
            value = msgspec.convert(kept.value, kind)
            check_plain(value)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
            return None  # the doctrine of a cache: rebuild, don't crash
        # A value of another session stands on a log that can't be asked here; its own key would say {session}.
        try:
            stands = kept.session != self._session_id or self._log.holds(kept.seq, kept.chain)
        except (apsw.Error, AxonError):
            stands = False  # the log can't be read now: nobody knows
        return msgspec.to_builtins(value) if stands else None

    def _write(self, path: Path, value: msgspec.Raw, seq: int) -> None:
        try:
            chain = self._log.chain_at(seq)
        except apsw.Error as error:
            raise StorageFailed(f"the log can't be read: {error}", path=str(path)) from error
        kept = msgspec.json.encode(Kept(value=value, session=self._session_id, seq=seq, chain=chain))
        for _ in range(ATTEMPTS):
            try:
                make_folder(path.parent)
                write_durable(path, kept)
            except (FileNotFoundError, FileExistsError):
                continue  # somebody removes data/state/ at this moment, which is always allowed
            except OSError as error:
                raise StorageFailed(f"{path.name} can't be written: {error.strerror}", path=str(path)) from error
            return
        for place in (path.parent, path.parent.parent):
            if place.exists() and not place.is_dir():
                raise StorageFailed(f"{place} is no folder", path=str(place))
        # Who removes it again and again has the last word: it is as if it had been set, and then removed.


def _encoded(key: str, value: Any, kind: Any) -> msgspec.Raw:
    """The value as it will lie in the file; ``StoreValueInvalid`` for what wouldn't come back as it was."""
    try:
        check_plain(value)
        msgspec.convert(value, kind)
        encoded = msgspec.json.encode(value)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise StoreValueInvalid(f"the value for {key!r} doesn't fit {kind}: {error}", key=key) from error
    if len(encoded) > MAX_BYTES:
        raise StoreValueInvalid(f"the value for {key!r} has {len(encoded)} bytes, more than {MAX_BYTES}", key=key)
    return msgspec.Raw(encoded)
