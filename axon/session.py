"""Which session of an agent a command reads: the one that was named, else the last."""

from __future__ import annotations

from pathlib import Path

from runtime.abi.errors import AgentNotFound, SessionNotFound
from runtime.config.agent import FILE
from runtime.kernel.session import LAST


def session_folder(agent: Path, session: str | None) -> Path:
    """The folder that holds the session's log; raises ``AgentNotFound`` and ``SessionNotFound``."""
    sessions = agent / "data" / "sessions"
    there = sorted(path.name for path in sessions.glob("*") if path.is_dir())
    if not there and not (agent / FILE).is_file():
        raise AgentNotFound(f"there is no agent in {agent}", folder=str(agent))
    name = session or _last(agent / "data", there)
    if name not in there:
        known = f"There are {', '.join(there)}." if there else "It hasn't run yet: `axon run DIR`."
        wanted = f"no session {session!r}" if session else "no session"
        raise SessionNotFound(f"{agent} has {wanted}", hint=known, folder=str(agent))
    return sessions / name


def _last(data: Path, there: list[str]) -> str:
    """The kernel notes the last session; ids are time-ordered, so without the note the newest is it."""
    try:
        noted = (data / LAST).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        noted = ""
    return noted if noted in there else there[-1] if there else ""
