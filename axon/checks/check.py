"""One line of ``axon doctor``: a promise, whether this machine keeps it, and what to do when it doesn't."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["held", "warning", "not held"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """``essential``: without it `axon run` refuses to start, or breaks its word."""

    name: str
    state: State
    detail: str
    fix: str = ""
    essential: bool = False


def held(name: str, detail: str, *, essential: bool = False) -> Check:
    """It is as it should be."""
    return Check(name=name, state="held", detail=detail, essential=essential)


def warning(name: str, detail: str, *, fix: str) -> Check:
    """It works, with less than one might expect."""
    return Check(name=name, state="warning", detail=detail, fix=fix)


def not_held(name: str, detail: str, *, fix: str, essential: bool = True) -> Check:
    """It isn't so."""
    return Check(name=name, state="not held", detail=detail, fix=fix, essential=essential)
