"""All that ``axon doctor`` found out, and how it reads on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from axon.checks import agent as agent_checks
from axon.checks.actuators import actuators
from axon.checks.check import Check, held, not_held
from axon.checks.engines import engines
from axon.checks.exchange import exchange
from axon.checks.folder import identity, knowledge
from axon.checks.isolation import isolation
from axon.checks.machine import machine
from axon.checks.storage import storage
from axon.checks.tools import tools
from capsule.errors import AxonError
from hardware_profiles.profile import Profile
from runtime.config.agent import FILE, AgentConfig, load_agent
from runtime.config.origin import Origin
from runtime.config.sections import Broker
from runtime.config.size import format_size

_SIZES = ("media.max_bytes", "capsule.memory")
_STYLES = {"held": "green", "warning": "yellow", "not held": "bold red"}


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """``ok``: everything essential is held; ``refused`` counts by error code, None without a running kernel."""

    ok: bool
    profile: str
    running: bool
    checks: list[Check]
    config: dict[str, Origin]
    refused: dict[str, int] | None


def examine(folder: Path, profile: Profile, *, wanted: bool) -> Diagnosis:
    """Look at the machine and at the agent in ``folder``; without one there only at the machine, unless ``wanted``."""
    agent, checks = _configured(folder, profile, wanted=wanted)
    summary = agent_checks.kernel_summary(folder) if agent else None
    checks = [*machine(profile), *storage(_data(folder)), *isolation(agent), *checks]
    checks.append(exchange(agent.broker if agent else Broker()))
    if agent:
        checks += [agent_checks.cognet(agent), *engines(agent, running=summary is not None)]
        checks += [knowledge(folder), identity(agent)]
        checks.append(agent_checks.stop_latch(folder))
        checks += [*actuators(agent, summary), *tools(agent, running=summary is not None)]
        checks += agent_checks.kernel(summary)
    return Diagnosis(
        ok=not any(check.essential and check.state == "not held" for check in checks),
        profile=profile.name,
        running=summary is not None,
        checks=checks,
        config=agent.origins if agent else {},
        refused=summary.refused if summary else None,
    )


def _configured(folder: Path, profile: Profile, *, wanted: bool) -> tuple[AgentConfig | None, list[Check]]:
    """The agent's configuration and the line about it."""
    if not wanted and not (folder / FILE).is_file():
        return None, [held("agent", "none here; name its folder to check it too")]
    try:
        agent = load_agent(folder, profile)
    except AxonError as error:
        return None, [not_held("agent", error.message, fix=error.hint or "Correct it.")]
    return agent, [held("agent", f"{agent.agent.name} in {agent.folder}", essential=True)]


def _data(folder: Path) -> Path:
    """The data folder, or the nearest folder above it that exists."""
    place = (folder / "data").absolute()
    return next(path for path in (place, *place.parents) if path.is_dir())


def render(found: Diagnosis) -> RenderableType:
    """Two tables and a verdict."""
    verdict = Text("Everything essential is held.", style="green")
    if not found.ok:
        verdict = Text("Something essential isn't held: `axon run` would refuse, or break its word.", style="bold red")
    tables: list[RenderableType] = [_check_table(found.checks)]
    if found.config:
        tables.append(_config_table(found.config))
    return Group(*tables, verdict)


def write(found: Diagnosis, console: Console) -> None:
    """On a pipe nothing is cut off."""
    if not console.is_terminal:
        console.width = 200
    console.print(render(found))


def _check_table(checks: list[Check]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("promise", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for check in checks:
        table.add_row(check.name, Text(check.state, style=_STYLES[check.state]), Text("\n".join(_lines(check))))
    return table


def _lines(check: Check) -> Iterator[str]:
    yield check.detail
    if check.fix and check.state != "held":
        yield f"→ {check.fix}"


def _config_table(config: dict[str, Origin]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("key", "value", "from"):
        table.add_column(name, overflow="fold")
    for key, origin in config.items():
        if origin.value is not None:
            table.add_row(key, Text(_value(key, origin.value)), origin.source)
    return table


def _value(key: str, value: object) -> str:
    """Sizes with their unit, everything else as it is."""
    return format_size(value) if key in _SIZES and isinstance(value, int) else str(value)
