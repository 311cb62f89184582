"""The tables of ``axon.toml``, one frozen struct each; the descriptions are what an error says was expected."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"
Name = Annotated[str, Meta(pattern=NAME_PATTERN, description="a name of up to 64 letters, digits, '.', '-' and '_'")]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every table has in common: frozen, and an unknown key is an error."""


class Agent(Section, frozen=True, kw_only=True):
    """``[agent]``: who this is. ``cognet`` is a shipped cognet, or ``cognet`` for the agent's own folder."""

    name: Name
    project: Name | None = None
    cognet: Annotated[
        str, Meta(pattern=NAME_PATTERN, description='a shipped cognet such as "reflex", or "cognet" for the own folder')
    ] = "reflex"


class Broker(Section, frozen=True, kw_only=True):
    """``[broker]``: ``private`` and ``embedded`` start one, anything else is the address of one that runs already."""

    url: Annotated[
        str, Meta(description='"private", "embedded", or mqtt://[user:password@]host[:port], or mqtts://...')
    ] = "private"
    ca_file: Annotated[str, Meta(description="the path of a PEM file with the authority to trust")] | None = None
    protocol: Annotated[Literal["3.1.1", "5"], Meta(description='"3.1.1" or "5"')] = "3.1.1"


class Sensor(Section, frozen=True, kw_only=True):
    """``[[sensors]]``: one driver process. ``options`` are the keys of its source that were given."""

    driver: str
    channel: Name
    source: Annotated[str, Meta(min_length=1, max_length=1024, description="what the driver reads from")]
    fps: Annotated[float, Meta(gt=0, le=1000, description="messages a second, above 0 up to 1000")]
    transient: Annotated[bool, Meta(description="true or false")] = False
    id: Name | None = None
    options: dict[str, str | int | float | bool] = {}

    @property
    def name(self) -> str:
        """The name of its process: the channel, with the id when there is one."""
        return f"{self.channel}.{self.id}" if self.id else self.channel


class Media(Section, frozen=True, kw_only=True):
    """``[media]``: where frames and sound are kept, bounded by bytes and by age in seconds."""

    store: Annotated[Literal["disk", "memory"], Meta(description='"disk" or "memory"')]
    max_bytes: Annotated[int, Meta(ge=1_000_000, le=2**50, description='a size of at least "1 MB", such as "2 GB"')]
    max_age_s: Annotated[float, Meta(ge=1, le=1e9, description="seconds, at least 1")]


_Size0 = Annotated[int, Meta(ge=0, le=2**50, description='a size such as "64 MB", or 0 for none')]
_Age0 = Annotated[float, Meta(ge=0, le=1e10, description="seconds, or 0 for none")]


class Log(Section, frozen=True, kw_only=True):
    """``[log]``: how long a commit may be held, when old entries are sealed, and when the oldest of those go.

    ``sync_delay_ms`` slows every sync down, for tests.
    """

    commit_interval_ms: Annotated[int, Meta(ge=0, le=10_000, description="whole milliseconds from 0 to 10,000")]
    sync_delay_ms: Annotated[int, Meta(ge=0, le=10_000, description="whole milliseconds from 0 to 10,000")] = 0
    seal_bytes: _Size0
    seal_age_s: _Age0
    retain_bytes: _Size0
    retain_age_s: _Age0
    min_free_bytes: _Size0


class Brain(Section, frozen=True, kw_only=True):
    """``[brain]``: entries it keeps resident, how long it may stay silent, wakes that may overlap."""

    window_entries: Annotated[int, Meta(ge=256, le=10_000_000, description="a whole number from 256 to 10,000,000")] = (
        20_000
    )
    heartbeat_s: Annotated[float, Meta(ge=0.2, le=600, description="seconds from 0.2 to 600")] = 2.0
    max_overlap: Annotated[int, Meta(ge=1, le=10_000, description="a whole number from 1 to 10,000")] = 64


class Capsule(Section, frozen=True, kw_only=True):
    """``[capsule]``: bounds of model-written code: seconds a block, memory of the interpreter that executes it."""

    timeout_s: Annotated[float, Meta(gt=0, le=86_400, description="seconds, above 0 up to 86,400")] = 10.0
    memory: Annotated[
        int, Meta(ge=16_000_000, le=2**50, description='a size of at least "16 MB", such as "256 MB"')
    ] = 256_000_000


class Engine(Section, frozen=True, kw_only=True):
    """``[engines.<role>]``: what fills a role. ``options`` are the provider's own keys that were given."""

    provider: Annotated[str, Meta(description='the name of a provider, such as "scripted"')]
    model: Annotated[str, Meta(min_length=1, max_length=1024, description="the name or path of a model")]
    options: dict[str, str | int | float | bool] = {}
