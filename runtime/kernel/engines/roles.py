"""Which role is filled by what: decided at the start, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from capsule.errors import AxonError
from runtime.abi.engines import EngineFacts
from runtime.abi.errors import EngineRoleUnbound
from runtime.config.cognet import CognetConfig, EngineRole
from runtime.config.providers import engine_of
from runtime.config.sections import Engine
from runtime.engines.protocol import Order
from runtime.engines.provider import Offer, provider


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """A role that the cognet declares; without ``order`` and ``offer`` nothing fills it, and ``reason`` says why."""

    name: str
    want: EngineRole
    order: Order | None = None
    offer: Offer | None = None
    reason: str = ""

    @property
    def facts(self) -> EngineFacts:
        """What the cognet may know of it before anything has been loaded."""
        offer = self.offer
        return EngineFacts(
            role=self.name,
            type=self.want.type,
            input=offer.input if offer else self.want.input,
            output=offer.output if offer else self.want.output,
            context=offer.context if offer else None,
            slots=offer.slots if offer else 0,
            available=offer is not None,
            reason=self.reason,
        )


def resolve(cognet: CognetConfig, engines: Mapping[str, Engine], folder: Path, *, override: str = "") -> list[Role]:
    """Every role of the cognet with what fills it; ``override`` names the provider of all of them.

    Raises ``EngineRoleUnbound`` or ``EngineModelInvalid`` for a role that the cognet can't do without.
    """
    return [
        _resolve(name, want, engine_of(override) if override else engines.get(name), folder)
        for name, want in cognet.engines.items()
    ]


def _resolve(name: str, want: EngineRole, engine: Engine | None, folder: Path) -> Role:
    try:
        if engine is None:
            raise EngineRoleUnbound(f"nothing fills the role {name!r}: axon.toml has no [engines.{name}]", role=name)
        return _filled(name, want, engine, folder)
    except AxonError as error:
        if want.optional:
            return Role(name=name, want=want, reason=error.message)
        raise


def _filled(name: str, want: EngineRole, engine: Engine, folder: Path) -> Role:
    order = Order(
        role=name,
        type=want.type,
        input=want.input,
        output=want.output,
        context=want.context,
        parallel=want.parallel,
        provider=engine.provider,
        model=engine.model,
        options=engine.options,
        folder=str(folder),
    )
    offer = provider(engine.provider).offer(order)
    if lacking := _lacking(want, offer):
        what = f"{engine.provider} with {engine.model!r} doesn't fit the role {name!r}"
        raise EngineRoleUnbound(f"{what}: the cognet asks for {lacking}", role=name)
    return Role(name=name, want=want, order=order, offer=offer)


def _lacking(want: EngineRole, offer: Offer) -> str:
    """What the cognet asks for and the offer lacks; "" when it fits."""
    if want.type not in offer.types:
        return f"type {want.type!r}, it has {', '.join(offer.types)}"
    for way, asked, given in (("in", want.input, offer.input), ("out", want.output, offer.output)):
        if missing := [one for one in asked if one not in given]:
            return f"{way} {missing}, it has {given}"
    if want.context is not None and (offer.context or 0) < want.context:
        return f"a context of {want.context} tokens, it has {offer.context or 'none'}"
    if offer.slots < want.parallel:
        return f"{want.parallel} requests at once, it serves {offer.slots}"
    return ""
