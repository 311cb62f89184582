"""``cognet.toml``: how a cognet wants to be woken, what it keeps, and which ABI it was written for."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from runtime.abi.errors import AbiMismatch, CognetInvalid, CognetNotFound
from runtime.abi.link import ABI_VERSION
from runtime.config.agent import AgentConfig
from runtime.config.document import Document, key_names
from runtime.config.sections import Name, Section
from runtime.config.state import SCHEMA, STATE, read_schema
from runtime.config.store import EXPECTED, EXPECTED_KEY, SESSION, is_store_key, store_type

FILE = "cognet.toml"
FORMAT = 1
OWN = "cognet"
"""The name in ``[agent] cognet`` that means the agent's own folder of that name."""

_RATES = ("rate", "rate_hz", "hz", "fps", "interval", "period")

_Wakes = Annotated[
    str,
    Meta(
        pattern=r"^(text|audio|visual|field)(:[A-Za-z0-9][A-Za-z0-9._-]{0,63})?\Z",
        description='text, audio, visual or field, alone or with a channel: "text:voice"',
    ),
]


class EngineRole(Section, frozen=True, kw_only=True):
    """``[engines.<role>]``: the structure that the cognet asks of a role; ``axon.toml`` says what fills it."""

    type: Annotated[Literal["generate", "transform", "stream"], Meta(description='"generate", "transform" or "stream"')]
    input: Annotated[list[Name], Meta(description="a list of names")] = msgspec.field(name="in", default_factory=list)
    output: Annotated[list[Name], Meta(description="a list of names")] = msgspec.field(name="out", default_factory=list)
    context: Annotated[int, Meta(ge=1, le=10_000_000, description="tokens, a whole number from 1")] | None = None
    parallel: Annotated[int, Meta(ge=1, le=1024, description="a whole number from 1 to 1024")] = 1
    optional: Annotated[bool, Meta(description="true or false")] = False


class _File(Section, frozen=True, kw_only=True):
    """The keys of the file."""

    format: Annotated[Literal[1], Meta(description="1, the format that this release reads")]
    abi: Annotated[str, Meta(description="the version of the ABI as text")]
    mode: Annotated[Literal["continuous", "invocation"], Meta(description='"continuous" or "invocation"')]
    wake_on: tuple[_Wakes, ...] = ("text",)
    max_ticks_per_wake: Annotated[int, Meta(ge=1, le=1_000_000, description="a whole number from 1 to 1,000,000")] = 32
    engines: dict[str, Any] = msgspec.field(default_factory=dict)
    store: dict[str, Any] = msgspec.field(default_factory=dict)


class CognetConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A cognet's declarations. ``store`` holds the type of each key as it is written; ``name`` names its folder."""

    name: str
    folder: Path
    abi: str
    mode: Literal["continuous", "invocation"]
    wake_on: tuple[str, ...]
    max_ticks_per_wake: int
    engines: dict[str, EngineRole]
    store: dict[str, str]


def find_cognet(agent: AgentConfig, shipped: Path) -> Path:
    """The folder of the agent's cognet: its own ``cognet/``, or one of those in ``shipped``."""
    name = agent.agent.cognet
    folder = agent.folder / OWN if name == OWN else shipped / name
    if not (folder / FILE).is_file():
        there = sorted(path.parent.name for path in shipped.glob(f"*/{FILE}"))
        making = f"Make it: `axon new cognet {shlex.quote(str(folder))}`."
        naming = f'In axon.toml, [agent] cognet is one of {", ".join(there)}, or "{OWN}" for the agent\'s own folder.'
        raise CognetNotFound(
            f"there is no cognet {name!r}: no {folder / FILE}",
            hint=making if name == OWN else naming,
            name=name,
            folder=str(folder),
        )
    return folder


def load_cognet(folder: Path) -> CognetConfig:
    """Read and check the declarations of the cognet in ``folder``.

    Raises ``CognetNotFound``, ``CognetInvalid`` (no ``main.py``), ``AbiMismatch`` and ``ConfigInvalid``.
    """
    path = folder / FILE
    try:
        document = Document.read(path)
    except OSError as error:
        raise CognetNotFound(f"there is no cognet in {folder}: {error}", folder=str(folder)) from error
    _check_abi(document)
    _check_rate(document)
    given = document.convert((), document.data, _File)
    if not (folder / "main.py").is_file():
        raise CognetInvalid(
            f"{folder} has no main.py", hint="A cognet's loop stands in its main.py.", folder=str(folder)
        )
    return CognetConfig(
        name=folder.name,
        folder=folder,
        abi=given.abi,
        mode=given.mode,
        wake_on=given.wake_on,
        max_ticks_per_wake=given.max_ticks_per_wake,
        engines={role: _role(document, role, raw) for role, raw in given.engines.items()},
        store=_store(document, given.store, folder),
    )


def _check_abi(document: Document) -> None:
    """Before all else: a cognet of another ABI may have keys that this release can't know."""
    wanted = document.data.get("abi", ABI_VERSION)
    if not isinstance(wanted, str):
        raise document.invalid(("abi",), "the version of the ABI as text", got=repr(wanted))
    if wanted != ABI_VERSION:
        line = document.line(("abi",))
        raise AbiMismatch(
            f'{document.path}:{line}: abi: the cognet wants ABI "{wanted}", this release offers "{ABI_VERSION}"',
            hint="Use the cognet's version for this release, or install the release it was written for.",
            file=str(document.path),
            line=line,
            key="abi",
            wanted=wanted,
            offered=ABI_VERSION,
        )


def _check_rate(document: Document) -> None:
    """People look for the rhythm here; it is the brain's own."""
    for name in _RATES:
        if name in document.data:
            hint = "A rate never stands here: the brain's clock has it, every(1 / 30, kernel.wake) in a boot hook."
            known = ", ".join(key_names(_File))
            raise document.invalid((name,), f"one of the keys {known}", got=f"`{name}`", hint=hint)


def _role(document: Document, role: str, raw: object) -> EngineRole:
    """What one role asks for."""
    key = ("engines", role)
    return document.convert(key, document.table(key, raw), EngineRole)


def _store(document: Document, given: dict[str, Any], folder: Path) -> dict[str, str]:
    """The store's keys and types: those of ``[store]``, or those of the class in ``state.py``, never of both."""
    from_class = read_schema(folder / STATE)
    if from_class is None:
        return {name: _declared(document, name, text) for name, text in given.items()}
    if given:
        hint = f"Keep one of the two; a key with {SESSION} can only stand in {FILE}."
        raise document.invalid(("store",), f"no [store] beside the class {SCHEMA} in {STATE}", hint=hint)
    return from_class


def _declared(document: Document, name: str, text: object) -> str:
    """The type of one store key, checked."""
    key = ("store", name)
    if not is_store_key(name):
        raise document.invalid(key, EXPECTED_KEY, got=repr(name)[:60])
    try:
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is no text")
        store_type(text)
    except ValueError as error:
        raise document.invalid(key, EXPECTED, got=repr(text)[:60]) from error
    return text
