"""How much of a log is checked when it is opened, and how.

Everything, while the file is small. Beyond that, what a cut can have touched: the entries since the last checkpoint
that completed (those before it lie synced in the main file), and the newest ones, which go into memory. Every page
of older history is checked against the chain when it is read, and ``axon log verify`` checks all. Segments are checked
in the same way; what is noted of them is checked at each opening.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import apsw

from runtime.abi.errors import LogDamaged
from runtime.log import catalog, chain
from runtime.log.pages import live_chain_at

SMALL_BYTES = 16 * 1024 * 1024
ROWS_AT_ONCE = 1000


def inspect(connection: apsw.Connection, *, window: int) -> None:
    """Raises ``LogDamaged``, or ``apsw.Error`` for a file that can't be read at all."""
    checked, suspect = connection.execute("SELECT checked, suspect FROM meta").get
    noted = catalog.read(connection)
    noted.check()
    catalog.carried(connection)
    floor = noted.floor.seq
    last = connection.execute("SELECT ifnull(max(seq), 0) FROM entry").get
    size = connection.execute("PRAGMA page_count").get * connection.execute("PRAGMA page_size").get
    if size <= SMALL_BYTES or suspect is not None:
        check_structure(connection)
        check_entries(connection, after=floor)
        return
    for table in ("meta", "boot", "mark", "floor", "segment", "gap", "carried"):
        check_structure(connection, table)
    check_entries(connection, after=max(min(checked, last - window), floor))


def check_structure(connection: apsw.Connection, table: str | None = None) -> None:
    """SQLite's own check of a table, or of everything."""
    what = f"('{table}')" if table else ""
    found = [line for (line,) in connection.execute(f"PRAGMA integrity_check{what}")]
    if found != ["ok"]:
        raise LogDamaged(f"SQLite reports: {found[0] if found else 'nothing'}", reports=found[:5])


def check_entries(connection: apsw.Connection, *, after: int) -> int:
    """Check the chain over the entries above ``after``; returns the last ``seq``."""
    previous = live_chain_at(connection, after)
    if previous is None:
        raise LogDamaged(f"entry {after} is missing", seq=after)
    rows: Any = connection.execute(f"SELECT {chain.COLUMNS} FROM entry WHERE seq > ? ORDER BY seq", (after,))
    while part := list(islice(rows, ROWS_AT_ONCE)):
        previous = chain.check(part, after=after, previous=previous)
        after = part[-1][0]
    return after
