"""A script: ordered rules that say what the engine answers, read from a TOML or JSON file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from runtime.abi.engines import Message
from runtime.abi.errors import EngineModelInvalid

DEFAULT = Path(__file__).with_name("default.toml")
MAX_BYTES = 1_000_000
_PLACE = re.compile(r"\$\{(\w+)\}")
_Delay = Annotated[int, Meta(ge=0, le=600_000)]
_Pattern = Annotated[str, Meta(max_length=4096)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every table has in common."""


class Pace(_Part, frozen=True, kw_only=True):
    """How an answer comes: milliseconds before its first piece and before each further one, tokens a piece."""

    first_ms: _Delay = 0
    piece_ms: _Delay = 0
    piece_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 1


class Rule(_Part, frozen=True, kw_only=True):
    """``reply`` to messages whose last one that isn't the assistant's matches ``when``, and an earlier one ``after``.

    ``${name}`` in the reply is that group of ``when``. The patterns are searched; ``.`` doesn't match a line's end,
    ``^`` and ``$`` match at lines, letters match in both cases.
    """

    when: _Pattern = ""
    after: _Pattern = ""
    reply: str
    pace: Pace | None = None


class Mapping(_Part, frozen=True, kw_only=True):
    """``output`` for an input that matches ``when``; an input that is no text is searched as JSON."""

    when: _Pattern = ""
    output: Any = None
    delay_ms: _Delay = 0


class Script(_Part, frozen=True, kw_only=True):
    """The whole file: ``rules`` for generate, ``transforms`` for transform, ``streams`` for what is pushed."""

    format: Literal[1]
    pace: Pace = Pace()
    rules: list[Rule] = []
    transforms: list[Mapping] = []
    streams: list[Mapping] = []

    @property
    def types(self) -> list[str]:
        """What kinds of role it can serve."""
        kinds = {"generate": self.rules, "transform": self.transforms, "stream": self.streams}
        return [kind for kind, rules in kinds.items() if rules]


def read(model: str, folder: Path) -> Script:
    """The script that ``model`` names, a path in the agent's folder or ``default``; raises ``EngineModelInvalid``."""
    path = script_path(model, folder)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        text = raw.decode("utf-8")
        parsed = msgspec.json.decode(raw) if path.suffix == ".json" else tomllib.loads(text)
        script = msgspec.convert(parsed, Script)
        _check(script)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise EngineModelInvalid(f"the script {path} can't be read: {error}", model=str(path)) from error
    return script


def script_path(model: str, folder: Path) -> Path:
    """Where the script lies."""
    return DEFAULT if model == "default" else folder / model


def reply_to(script: Script, messages: list[Message]) -> tuple[str, Pace] | None:
    """The first rule's reply that fits, and its pace; None when none does."""
    asked = [index for index, message in enumerate(messages) if message.role != "assistant"]
    last = asked[-1] if asked else -1
    said = messages[last].content if asked else ""
    before = "\n".join(message.content for message in messages[: max(0, last)])
    for rule in script.rules:
        found = _searched(rule.when, said)
        if found and (not rule.after or _searched(rule.after, before)):
            return filled(rule.reply, found), rule.pace or script.pace
    return None


class Found(NamedTuple):
    """A rule that fits, its output, and where in the text its pattern ended."""

    rule: Mapping
    output: Any
    end: int


def output_of(rules: list[Mapping], value: Any) -> Found | None:
    """The first rule that fits; None when none does."""
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
    for rule in rules:
        if found := _searched(rule.when, text):
            output = filled(rule.output, found) if isinstance(rule.output, str) else rule.output
            return Found(rule, output, found.end())
    return None


def filled(template: str, found: re.Match[str]) -> str:
    """The template with the groups of a match in their places; a group that took no part is empty."""
    return _PLACE.sub(lambda place: found[_group(place[1])] or "", template)


def _group(name: str) -> int | str:
    return int(name) if name.isdecimal() else name


def _searched(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.MULTILINE | re.IGNORECASE)


def _check(script: Script) -> None:
    """Every pattern compiles and every place in a reply is one of its groups."""
    if not script.types:
        raise ValueError("it has no rules")
    every: list[Rule | Mapping] = [*script.rules, *script.transforms, *script.streams]
    for rule in every:
        template = rule.reply if isinstance(rule, Rule) else rule.output
        try:
            pattern = re.compile(rule.when)
            if isinstance(rule, Rule):
                re.compile(rule.after)
        except (re.error, OverflowError) as error:
            raise ValueError(f"the pattern {rule.when!r}: {error}") from error
        for name in _PLACE.findall(template) if isinstance(template, str) else []:
            known = int(name) <= pattern.groups if name.isdecimal() else name in pattern.groupindex
            if not known:
                raise ValueError(f"{rule.when!r} has no group for ${{{name}}}")
