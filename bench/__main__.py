"""``make bench``: run every measurement, print each figure, write ``bench/results.json``.

``python -m bench [NAME ...]`` runs some of them and prints without writing.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import msgspec

from bench.figure import Figure

PARTS = ("log", "outputs", "rhythm", "history")
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


def main() -> int:
    """Exit 1 when a goal isn't met."""
    chosen = sys.argv[1:] or list(PARTS)
    figures: list[Figure] = []
    for part in chosen:
        for figure in importlib.import_module(f"bench.{part}").figures():
            show(figure)
            figures.append(figure)
    if not sys.argv[1:]:
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
    return int(any(figure.ok is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
