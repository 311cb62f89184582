"""``axon.toml``: one agent's configuration, the hardware profile filling in what the file doesn't say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from hardware_profiles.profile import Profile
from runtime.abi.errors import AgentNotFound
from runtime.config.actuators import Actuator, check_rules, load_actuators
from runtime.config.document import Document, shown
from runtime.config.origin import Origin, origins
from runtime.config.policy import Policy, load_policy
from runtime.config.providers import load_engine
from runtime.config.sections import Agent, Brain, Broker, Capsule, Engine, Log, Media, Section, Sensor
from runtime.config.sensor import load_sensor
from runtime.config.size import EXPECTED, parse_size

S = TypeVar("S", bound=Section)
FILE = "axon.toml"
FORMAT = 1
LATER = ("mapping", "redact")
"""Tables that a later release serves: refused, since an owner who wrote a limit must not believe it holds."""
KNOWN = ["format", "agent", "broker", "sensors", "media", "log", "brain", "capsule", "engines", "policy", "actuators"]
_SIZES = (
    ("media", "max_bytes"),
    ("capsule", "memory"),
    ("log", "seal_bytes"),
    ("log", "retain_bytes"),
    ("log", "min_free_bytes"),
)
_MAX_SENSORS = 256


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the agent's folder says, complete; ``origins`` tells by dotted key where each value came from."""

    folder: Path
    profile: Profile
    agent: Agent
    broker: Broker
    sensors: tuple[Sensor, ...]
    media: Media
    log: Log
    brain: Brain
    capsule: Capsule
    engines: dict[str, Engine]
    policy: Policy
    actuators: dict[str, Actuator]
    origins: dict[str, Origin]


def load_agent(folder: Path, profile: Profile) -> AgentConfig:
    """Read and check ``axon.toml`` in ``folder``; raises ``AgentNotFound`` and ``ConfigInvalid``."""
    folder = folder.absolute()
    try:
        document = Document.read(folder / FILE)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise AgentNotFound(f"there is no agent in {folder}: {FILE}: {reason}", folder=str(folder)) from error
    return _Reader(document, profile).config(folder)


class _Reader:
    """Turns one document into a configuration, keeping account of where each value came from."""

    def __init__(self, document: Document, profile: Profile) -> None:
        self._document = document
        self._profile = profile
        self._origins: dict[str, Origin] = {}

    def config(self, folder: Path) -> AgentConfig:
        """The whole file, table by table."""
        self._check_top()
        if "agent" not in self._document.data:
            raise self._document.invalid(("agent",), "a table [agent] with the agent's name", got="nothing")
        media, log = self._profile.media, self._profile.log
        policy = load_policy(self._document, self._origins)
        return AgentConfig(
            folder=folder,
            profile=self._profile,
            agent=self._section("agent", Agent),
            broker=self._broker(folder),
            sensors=self._sensors(folder),
            media=self._section("media", Media, fill=msgspec.structs.asdict(media)),
            log=self._section("log", Log, fill=msgspec.structs.asdict(log)),
            brain=self._section("brain", Brain),
            capsule=self._section("capsule", Capsule),
            engines=self._engines(),
            policy=policy,
            actuators=self._actuators(folder, policy),
            origins=self._origins,
        )

    def _check_top(self) -> None:
        """Format and names of the tables."""
        document = self._document
        if document.data.get("format") != FORMAT or document.data["format"] is True:
            got = shown(document.data["format"]) if "format" in document.data else "nothing"
            raise document.invalid(("format",), f"format = {FORMAT}, which is what this release reads", got=got)
        for name in document.data:
            if name in LATER:
                hint = f"Remove [{name}] until you run a release that has it: here nothing of it would be in force."
                raise document.invalid((name,), "no table that this release doesn't serve yet", hint=hint)
            if name not in KNOWN:
                raise document.unknown((name,), KNOWN)

    def _section(self, name: str, kind: type[S], *, fill: dict[str, Any] | None = None) -> S:
        """One table; ``fill`` are the profile's values for keys that aren't given."""
        document, fill = self._document, fill or {}
        given = document.table((name,), document.data.get(name, {}))
        section = document.convert((name,), {**fill, **self._with_sizes(name, given)}, kind)
        found = origins(document, (name,), section=section, given=given, rest="default")
        for key in fill.keys() - given.keys():
            dotted = f"{name}.{key}"
            found[dotted] = Origin(value=found[dotted].value, source=f"profile {self._profile.name}")
        self._origins |= found
        return section

    def _with_sizes(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """The same table with sizes such as ``"2 GB"`` as bytes."""
        changed = dict(given)
        for table, key in _SIZES:
            if table == name and isinstance(given.get(key), str):
                try:
                    changed[key] = parse_size(given[key])
                except ValueError as error:
                    raise self._document.invalid((name, key), EXPECTED, got=shown(given[key])) from error
        return changed

    def _actuators(self, folder: Path, policy: Policy) -> dict[str, Actuator]:
        """The tables, checked against how long a commit may be held, and the rules about them."""
        given = self._document.data.get("log", {})
        held = given.get("commit_interval_ms", self._profile.log.commit_interval_ms)
        actuators = load_actuators(self._document, self._origins, folder=folder, held_ms=held)
        check_rules(self._document, actuators, policy)
        return actuators

    def _broker(self, folder: Path) -> Broker:
        """The broker with an address that can be dialled, and its file's path made absolute."""
        broker = self._section("broker", Broker)
        if broker.url not in ("private", "embedded") and not _dialable(broker.url):
            raise self._document.invalid(
                ("broker", "url"), '"private", "embedded", mqtt://host[:port] or mqtts://host[:port]'
            )
        if broker.ca_file is None:
            return broker
        path = folder / broker.ca_file
        if not path.is_file():
            raise self._document.invalid(("broker", "ca_file"), "the path of a file that exists", got=shown(str(path)))
        return msgspec.structs.replace(broker, ca_file=str(path))

    def _sensors(self, folder: Path) -> tuple[Sensor, ...]:
        """Every ``[[sensors]]`` table; two may share a channel, never channel and id."""
        document = self._document
        tables = document.data.get("sensors", [])
        if not isinstance(tables, list) or len(tables) > _MAX_SENSORS:
            raise document.invalid(("sensors",), f"up to {_MAX_SENSORS} tables [[sensors]]", got=type(tables).__name__)
        sensors: dict[str, Sensor] = {}
        for index, raw in enumerate(tables):
            key = ("sensors", index)
            sensor = load_sensor(document, key, given=document.table(key, raw), folder=folder)
            if sensor.name in sensors:
                expected = "a channel of its own, or an id that tells it from the other sensor on that channel"
                raise document.invalid((*key, "channel"), expected, got=shown(sensor.name))
            sensors[sensor.name] = sensor
            self._origins |= origins(document, key, section=sensor, given=raw, rest=f"driver {sensor.driver}")
        return tuple(sensors.values())

    def _engines(self) -> dict[str, Engine]:
        """One table a role."""
        document = self._document
        roles = document.table(("engines",), document.data.get("engines", {}))
        engines: dict[str, Engine] = {}
        for role, raw in roles.items():
            key = ("engines", role)
            engines[role] = load_engine(document, role, document.table(key, raw))
            self._origins |= origins(document, key, section=engines[role], given=raw, rest="default")
        return engines


def _dialable(url: str) -> bool:
    """Whether this is an address of a broker: scheme, host, and a port if any that exists."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port that is no number, a broken IPv6 address
        return False
    rest = (parts.path.removeprefix("/"), parts.query, parts.fragment)
    return parts.scheme in ("mqtt", "mqtts") and bool(parts.hostname) and port != 0 and not any(rest)
