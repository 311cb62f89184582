"""The tables of ``log.db``, format 1."""

from __future__ import annotations

import apsw

from runtime.abi.errors import LogDamaged, LogVersion

FORMAT = 1
FILE_NAME = "log.db"

RARE = "type < 'cognet:b'"
"""Actions and ``axon:*``: the types that are looked for one by one; stimuli and outputs sort after them."""

TABLES = (
    "CREATE TABLE entry(seq INTEGER PRIMARY KEY, type TEXT NOT NULL, body BLOB NOT NULL, chain BLOB NOT NULL) STRICT",
    f"CREATE INDEX entry_rare ON entry(type) WHERE {RARE}",
    "CREATE TABLE telemetry(id INTEGER PRIMARY KEY, after_seq INTEGER NOT NULL, events INTEGER NOT NULL,"
    " body BLOB NOT NULL) STRICT",
    "CREATE TABLE mark(channel TEXT NOT NULL, source_id TEXT NOT NULL, epoch TEXT NOT NULL, high INTEGER NOT NULL,"
    " retired INTEGER NOT NULL, seq INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY(channel, source_id, epoch))"
    " STRICT, WITHOUT ROWID",
    "CREATE TABLE boot(number INTEGER PRIMARY KEY, boot_id TEXT NOT NULL, started_ms INTEGER NOT NULL,"
    " after_seq INTEGER NOT NULL, ended_ms INTEGER, clean INTEGER NOT NULL DEFAULT 0,"
    " reopens INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '') STRICT",
    # `checked`: entries up to here lie in the main file, synced and known to be good; `suspect`: damage was seen;
    # `note`: what a salvage has to tell at the next boot, as JSON.
    "CREATE TABLE meta(one INTEGER PRIMARY KEY CHECK(one = 1), format INTEGER NOT NULL, agent_id TEXT NOT NULL,"
    " session_id TEXT NOT NULL, checked INTEGER NOT NULL DEFAULT 0, suspect INTEGER,"
    " note TEXT NOT NULL DEFAULT '') STRICT",
    # What left `entry`, each as a record with its checksum (runtime/log/catalog.py): where the live rows begin, the
    # segments, what can't be read any more, and blocks that were started in a segment and had no result there.
    "CREATE TABLE floor(one INTEGER PRIMARY KEY CHECK(one = 1), record BLOB NOT NULL, sum INTEGER NOT NULL) STRICT",
    "CREATE TABLE segment(first INTEGER PRIMARY KEY, last INTEGER NOT NULL, record BLOB NOT NULL,"
    " sum INTEGER NOT NULL) STRICT",
    "CREATE TABLE gap(first INTEGER PRIMARY KEY, last INTEGER NOT NULL, record BLOB NOT NULL,"
    " sum INTEGER NOT NULL) STRICT",
    "CREATE TABLE carried(action TEXT PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL,"
    " sum INTEGER NOT NULL) STRICT",
)
ADDED = TABLES[-4:]
"""Tables that logs of an earlier build of format 1 lack."""


def create(connection: apsw.Connection, *, agent_id: str, session_id: str) -> None:
    """Make the tables in an empty database, in one transaction."""
    with connection:
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO meta(one, format, agent_id, session_id) VALUES (1, ?, ?, ?)", (FORMAT, agent_id, session_id)
        )
        connection.execute(f"PRAGMA user_version={FORMAT}")


def complete(connection: apsw.Connection) -> None:
    """Add the tables that a log of an earlier build lacks."""
    if connection.table_exists("main", "floor"):
        return
    with connection:
        for statement in ADDED:
            connection.execute(statement)


def is_empty(connection: apsw.Connection) -> bool:
    """Whether nothing was ever made in this database."""
    return not connection.execute("SELECT count(*) FROM sqlite_schema").get


def check_format(connection: apsw.Connection) -> None:
    """Raise ``LogVersion`` for a log of another format, ``LogDamaged`` when its two marks of it disagree."""
    version = connection.pragma("user_version")
    formats = connection.execute("SELECT format FROM meta").get
    if version != formats:
        raise LogDamaged(f"the log calls itself format {version} and {formats}", seq=1)
    if version != FORMAT:
        raise LogVersion(
            f"the log has format {version}; this release reads {FORMAT}",
            hint="Run the release that wrote it, or a later one.",
            found=version,
            known=FORMAT,
        )
