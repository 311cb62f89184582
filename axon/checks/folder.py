"""What lies in the agent's folder for its brain: knowledge that can be named and read, an identity that renders."""

from __future__ import annotations

import asyncio
from pathlib import Path

from axon.checks.check import Check, held, not_held, warning
from capsule.errors import AxonError
from runtime.config.agent import AgentConfig
from runtime.kernel.base import FILE, render, variables
from runtime.knowledge.knowledge import Knowledge
from runtime.knowledge.places import store_folder

SHOWN = 8


def knowledge(folder: Path) -> Check:
    """Every file in the store and in the modules' corpora is an entry that can be read, or is told here."""
    if store_folder(folder).is_symlink():
        fix = "Move the real folder there, or mount it; `axon run` refuses a link."
        return not_held("knowledge", f"{store_folder(folder)} is a link", fix=fix)
    try:
        found = Knowledge(folder)
        entries, odd = len(found.entries()), found.odd()
    except (AxonError, OSError) as error:
        return not_held("knowledge", str(error), fix="Correct the folder knowledge/.")
    if not odd:
        return held("knowledge", f"{entries:,} entries")
    told = "; ".join(f"{path!r} {why}" for path, why in odd[:SHOWN])
    more = f"; and {len(odd) - SHOWN:,} more" if len(odd) > SHOWN else ""
    fix = "Rename, replace or remove them: a brain can't use them, or could take one for another."
    return warning("knowledge", f"{entries:,} entries; {told}{more}", fix=fix)


def identity(agent: AgentConfig) -> Check:
    """``boot.md`` can be rendered."""
    path = agent.folder / FILE
    if not path.exists():
        return held("identity", f"no {FILE}: the brain gets an empty one")
    # The session's id is known when a kernel runs; any text stands for it here.
    found = asyncio.run(render(path, variables(agent, cognet=agent.agent.cognet, session="session")))
    if refusal := found.refusal(path):
        return not_held("identity", refusal.message, fix=refusal.hint, essential=False)
    return held("identity", f"{FILE} renders to {len(found.text):,} characters")
