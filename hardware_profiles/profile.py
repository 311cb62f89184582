"""A hardware profile: what the runtime should assume about one kind of board, read from a TOML file beside this one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

FOLDER = Path(__file__).parent
ROLES = ("kernel", "sensors", "engines")
Role = Literal["kernel", "sensors", "engines"]
_Core = Annotated[int, Meta(ge=0, le=1023)]
_Positive = Annotated[int, Meta(ge=1)]


class ProfileInvalid(ValueError):
    """No profile of that name, or one whose file can't be read; ``name``."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every part of a profile has in common."""


class Cores(_Part, frozen=True, kw_only=True):
    """Which cores a role may use; an empty list leaves it where Linux puts it. The brain shares the kernel's."""

    kernel: list[_Core] = []
    sensors: list[_Core] = []
    engines: list[_Core] = []

    def usable(self, role: Role, available: Iterable[int]) -> frozenset[int]:
        """The cores of ``role`` that this process may really use; empty means: don't pin."""
        wanted: list[int] = getattr(self, role)
        return frozenset(wanted) & frozenset(available)


class LogDefaults(_Part, frozen=True, kw_only=True):
    """How the log spares the board's storage: milliseconds a commit may be held, when entries are sealed (bytes,
    seconds), and what the sealed ones may take: bytes, seconds, and what must stay free; 0 for no such bound.
    """

    commit_interval_ms: Annotated[int, Meta(ge=0, le=10_000)]
    seal_bytes: Annotated[int, Meta(ge=0)]
    seal_age_s: Annotated[float, Meta(ge=0)]
    retain_bytes: Annotated[int, Meta(ge=0)] = 0
    retain_age_s: Annotated[float, Meta(ge=0)] = 0
    min_free_bytes: Annotated[int, Meta(ge=0)] = 0


class MediaDefaults(_Part, frozen=True, kw_only=True):
    """Where frames and sound are kept, and how much of them: bytes and seconds."""

    store: Literal["disk", "memory"]
    max_bytes: _Positive
    max_age_s: _Positive


class MemoryBudget(_Part, frozen=True, kw_only=True):
    """What the whole agent should need at most, engines included; bytes."""

    budget_bytes: _Positive


class Watchdog(_Part, frozen=True, kw_only=True):
    """The longest time-out the board's hardware watchdog takes, in seconds; 0 when it has none."""

    timeout_s: Annotated[int, Meta(ge=0, le=600)] = 0


class Profile(_Part, frozen=True, kw_only=True):
    """One board. ``compatible`` are device-tree names, the most specific first; ``machine`` is ``uname -m``."""

    format: Literal[1]
    name: str
    title: str
    machine: str
    compatible: list[str] = []
    cores: Cores
    log: LogDefaults
    media: MediaDefaults
    memory: MemoryBudget
    watchdog: Watchdog = Watchdog()


def names() -> list[str]:
    """The names of every profile that is shipped, in order."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Profile:
    """The profile of that name; ``ProfileInvalid`` when there is none or its file is wrong."""
    known = names()
    if name not in known:
        raise ProfileInvalid(f"there is no hardware profile {name!r}; there are {', '.join(known)}", name=name)
    try:
        raw = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        profile = msgspec.convert(raw, Profile)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
        raise ProfileInvalid(f"the hardware profile {name!r} can't be read: {error}", name=name) from error
    if profile.name != name:
        raise ProfileInvalid(f"{name}.toml calls itself {profile.name!r}", name=name)
    return profile
