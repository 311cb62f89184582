"""What ``[engines.<role>]`` of ``axon.toml`` may say for each provider: its own keys, and the model without one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from runtime.config.document import Document, key_names, shown
from runtime.config.sections import Engine, Section

_Tokens = Annotated[int, Meta(ge=16, le=10_000_000, description="tokens, a whole number from 16")]
_Slots = Annotated[int, Meta(ge=1, le=256, description="a whole number from 1 to 256")]


class Own(Section, frozen=True, kw_only=True):
    """The keys that only one provider knows; what isn't given is the provider's to choose."""


class Scripted(Own, frozen=True, kw_only=True):
    """The scripted engine: how long its context is, how many requests it serves at once."""

    context: _Tokens | None = None
    slots: _Slots | None = None


class EngineProvider(msgspec.Struct, frozen=True, kw_only=True):
    """One provider: the model it takes when none is named (None: one has to be), and its own keys."""

    model: str | None
    keys: type[Own]


PROVIDERS: dict[str, EngineProvider] = {"scripted": EngineProvider(model="default", keys=Scripted)}
_COMMON = [name for name in key_names(Engine) if name != "options"]


def load_engine(document: Document, role: str, given: dict[str, Any]) -> Engine:
    """What fills a role; raises ``ConfigInvalid``."""
    key = ("engines", role)
    name = given.get("provider")
    provider = PROVIDERS.get(name) if isinstance(name, str) else None
    if provider is None:
        got = shown(name) if "provider" in given else "nothing"
        raise document.invalid((*key, "provider"), f"a provider: {', '.join(PROVIDERS)}", got=got)
    known = key_names(provider.keys)
    for word in given:
        if word not in _COMMON and word not in known:
            raise document.unknown((*key, word), _COMMON + known)
    default = {} if provider.model is None else {"model": provider.model}
    engine = document.convert(key, default | {w: v for w, v in given.items() if w in _COMMON}, Engine)
    options = {word: given[word] for word in known if word in given}
    document.convert(key, options, provider.keys)
    return msgspec.structs.replace(engine, options=options)


def engine_of(provider: str) -> Engine:
    """What fills a role when a command says no more than the provider's name."""
    return Engine(provider=provider, model=PROVIDERS[provider].model or "")
