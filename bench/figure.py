"""One measured figure beside its reference, as ``bench/results.json`` holds it."""

from __future__ import annotations

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """``goal`` is the bound that ``value`` must keep, in its unit; None where it is only reported.

    ``reference`` says what was measured beside it and ``ratio`` is value / reference_value.
    """

    name: str
    value: float
    unit: str
    reference: str
    reference_value: float | None = None
    ratio: float | None = None
    goal: float | None = None
    ok: bool | None = None


def at_most(name: str, value: float, goal: float | None, unit: str, reference: str, measured: float | None) -> Figure:
    """A figure that should be small."""
    return _figure(name, value, goal, unit, reference, measured, ok=None if goal is None else value <= goal)


def at_least(name: str, value: float, goal: float | None, unit: str, reference: str, measured: float | None) -> Figure:
    """A figure that should be large."""
    return _figure(name, value, goal, unit, reference, measured, ok=None if goal is None else value >= goal)


def _figure(
    name: str, value: float, goal: float | None, unit: str, reference: str, measured: float | None, *, ok: bool | None
) -> Figure:
    ratio = value / measured if measured else None
    return Figure(
        name=name,
        value=_round(value),
        unit=unit,
        reference=reference,
        reference_value=None if measured is None else _round(measured),
        ratio=None if ratio is None else _round(ratio),
        goal=None if goal is None else _round(goal),
        ok=ok,
    )


def _round(value: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{value:.4g}")


def percentile(values: list[float], percent: float) -> float:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100).__int__() - 1)]


def median(values: list[float]) -> float:
    """The middle one, or the lower of two."""
    return percentile(values, 50)
