"""docs/durability.md promises nothing without a test: every row of its tables names one that exists."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "durability.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS = [
    line
    for line in PAGE.splitlines()
    if line.startswith("| ") and not re.match(r"\| (promise|fault|layer|control) \|", line)
]
FAULTS = [line for line in PAGE.split("## Faults")[1].split("\n## ")[0].splitlines() if line in ROWS]


@lru_cache
def named_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_every_row_names_a_test(row: str) -> None:
    assert NAMED.search(row.rstrip(" |").rpartition("|")[2]), "its last column names no test"


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(PAGE))))
def test_every_test_that_is_named_exists(file: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in named_in(file)


def test_every_fault_says_what_the_user_sees() -> None:
    assert len(FAULTS) >= 15
    for row in FAULTS:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 5
        assert all(cells), row
