"""What the brain's sandbox shows it, and the proof at each start that it shows nothing else."""

from __future__ import annotations

from pathlib import Path

from capsule.errors import SandboxUnavailable
from capsule.sandbox.availability import why_unavailable
from capsule.sandbox.plan import Bind, Plan, python_plan
from capsule.sandbox.selftest import SelfTest, self_test
from runtime.knowledge.places import MODULES, corpora, knowledge_folders

INSTALLED = Path(__file__).resolve().parents[2]
PACKAGES = [INSTALLED / "runtime", INSTALLED / "capsule"]
COGNET_INSIDE = "/app/cognet"
OWNERS = ("axon.toml", "boot.md", "data", MODULES)
"""What of the agent's folder a brain must never see."""


def knowledge_binds(agent: Path) -> list[Bind]:
    """The agent's knowledge at its own paths, read-only: a catalogue's ``path`` opens in every sandbox with these."""
    return [Bind(folder, str(folder)) for folder in knowledge_folders(agent.resolve())]


def brain_plan(agent: Path, cognet: Path, fds: tuple[int, int]) -> Plan:
    """The brain's process: its two sockets, the packages it builds on, its cognet, the knowledge, nothing more."""
    extra = [Bind(cognet, COGNET_INSIDE), *knowledge_binds(agent)]
    return python_plan("runtime.brain", [str(fd) for fd in fds], packages=PACKAGES, extra=extra, fds=fds)


def try_sandbox(agent: Path | None, cognet: Path | None) -> SelfTest:
    """Try forbidden acts in a sandbox of the brain's shape; blocking, main thread."""
    extra = [] if cognet is None else [Bind(cognet, COGNET_INSIDE)]
    if agent is None:
        return self_test(packages=PACKAGES, hidden=[], extra=extra)
    return self_test(packages=PACKAGES, hidden=hidden_of(agent), extra=extra + knowledge_binds(agent))


def check_sandbox(agent: Path, cognet: Path) -> SelfTest:
    """``try_sandbox`` as the kernel's condition for a start.

    Raises ``SandboxLeaks`` when an act succeeded, ``SandboxUnavailable`` with what this machine lacks.
    """
    try:
        found = try_sandbox(agent, cognet)
    except SandboxUnavailable as error:
        raise SandboxUnavailable(why_unavailable() or error.message) from error
    if not found.ok and (reason := why_unavailable()):
        raise SandboxUnavailable(reason)
    found.must_hold()
    return found


def hidden_of(agent: Path) -> list[Path]:
    """What of the agent's folder must not be seen; of ``modules`` everything but the corpora that are shown."""
    hidden = [agent / name for name in OWNERS]
    if found := corpora(agent.resolve()):
        modules = agent.resolve() / MODULES
        hidden.remove(agent / MODULES)
        hidden += [path for path in modules.iterdir() if path.name not in found]
        hidden += [path for name, shown in found.items() for path in (modules / name).iterdir() if path != shown]
    return hidden
