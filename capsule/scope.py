"""What a capsule can execute: the tool modules that loaded, and those that didn't, with the reason."""

from __future__ import annotations

import msgspec


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One function of a module: ``declaration`` is its signature as Python, such as ``def move(x: float) -> None``."""

    name: str
    declaration: str
    doc: str = ""
    is_async: bool = False


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """An importable tool module and its members, in the order of the source."""

    name: str
    doc: str = ""
    members: list[Member] = []


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """A module (``arm``) or a member (``arm.move``) that can't be used now."""

    name: str
    reason: str


class AxonScope(msgspec.Struct, frozen=True, kw_only=True):
    """The whole surface that the present incarnation implements."""

    modules: list[Module] = []
    unavailable: list[Unavailable] = []
