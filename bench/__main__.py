"""``make bench``: run every measurement, print each figure, write ``bench/results.json``.

``python -m bench [NAME ...]`` (or ``make bench ARGS=NAME``) runs some of them and replaces their figures alone.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import msgspec

from bench.figure import Figure

PARTS = ("log", "outputs", "rhythm", "history", "capsule")
RESULTS = Path(__file__).with_name("results.json")


def show(figure: Figure) -> None:
    """One line a figure."""
    verdict = {True: "ok  ", False: "MISS", None: "    "}[figure.ok]
    goal = "" if figure.goal is None else f"  goal {figure.goal:g}"
    reference = "" if figure.reference_value is None else f" = {figure.reference_value:g}"
    print(
        f"{verdict} {figure.name:36} {figure.value:>10g} {figure.unit}{goal}  ({figure.reference}{reference})",
        flush=True,
    )


def keep(measured: list[Figure]) -> None:
    """Put figures into the file, each in the place of the one it replaces."""
    known = msgspec.json.decode(RESULTS.read_bytes(), type=list[Figure]) if RESULTS.exists() else []
    figures = {figure.name: figure for figure in (*known, *measured)}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(list(figures.values()))) + b"\n")


def main() -> int:
    """Exit 1 when a goal isn't met."""
    missed = False
    for part in sys.argv[1:] or PARTS:
        measured = []
        for figure in importlib.import_module(f"bench.{part}").figures():
            show(figure)
            measured.append(figure)
        keep(measured)
        missed = missed or any(figure.ok is False for figure in measured)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
