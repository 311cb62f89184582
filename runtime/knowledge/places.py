"""Where an agent's knowledge lies: its own store, and a corpus in each module that brings one."""

from __future__ import annotations

from pathlib import Path

from runtime.abi.errors import KnowledgeEscape
from runtime.durable.files import make_folder

STORE = "knowledge"
MODULES = "modules"


def store_folder(agent: Path) -> Path:
    """The agent's own store; ``agent`` must be the real path of its folder."""
    return agent / STORE


def corpora(agent: Path) -> dict[str, Path]:
    """The corpus of each module that has one: ``modules/<module>/knowledge/``, beside ``modules/<module>.py`` too.

    A module's name is one of Python; what is a link anywhere below the agent isn't taken.
    """
    modules = agent / MODULES
    try:
        names = [] if modules.is_symlink() else sorted(path.name for path in modules.iterdir())
    except OSError:  # no modules, or none that may be looked at: no corpora
        return {}
    found = {name: modules / name / STORE for name in names if name.isidentifier() and not name.startswith("_")}
    return {name: folder for name, folder in found.items() if _is_real(folder.parent) and _is_real(folder)}


def knowledge_folders(agent: Path) -> list[Path]:
    """Every folder that a catalogue's ``path`` may lie in."""
    return [folder for folder in (store_folder(agent), *corpora(agent).values()) if _is_real(folder)]


def prepare(agent: Path) -> None:
    """Make the store's folder when there is none; ``KnowledgeEscape`` when something else is in its place."""
    folder = store_folder(agent)
    if not folder.exists() and not folder.is_symlink():
        make_folder(folder)
    if not _is_real(folder):
        raise KnowledgeEscape(
            f"{folder} is a link or a file, not a folder of the agent's own",
            hint="Move the real folder there; to share one, mount it.",
            name=STORE,
        )


def _is_real(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()
