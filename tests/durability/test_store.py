"""A brain's private store while the log can't be read: answers, never silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from runtime.abi.errors import StorageFailed
from runtime.kernel.store import Store


class UnreadableLog:
    """A log whose disk takes and doesn't give."""

    last_seq = 7

    async def durable(self, seq: int) -> None:
        return

    def chain_at(self, seq: int) -> str:
        raise apsw.IOError("on purpose")

    def holds(self, seq: int, chain: str) -> bool:
        raise apsw.IOError("on purpose")


async def test_a_log_that_cant_be_read_answers_the_brain(tmp_path: Path) -> None:
    log: Any = UnreadableLog()
    store = Store(tmp_path, declared={"key": int}, session_id="s", log=log)
    (tmp_path / "key.json").write_text('{"value": 1, "session": "s", "seq": 7, "chain": "00"}')
    with pytest.raises(StorageFailed):
        await store.set("key", 2)
    assert await store.get("key") is None
    store.close()
