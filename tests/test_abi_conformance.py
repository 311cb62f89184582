"""docs/abi-conformance.md promises nothing without a test: every row names some, and all of them exist."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "abi-conformance.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| sentence ")]
SECTIONS = {part.split("\n")[0]: part for part in PAGE.split("\n## ")[1:]}


@lru_cache
def names_in(file: str) -> set[str]:
    """Names of the tests of a file; read, not run."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:50])
def test_every_row_is_a_sentence_and_its_tests(row: str) -> None:
    cells = [cell.strip() for cell in row.strip().strip("|").split(" | ")]
    assert len(cells) == 2, "a row is a sentence and its tests"
    assert cells[0]
    assert NAMED.search(cells[1]), "its last column names no test"
    assert not NAMED.sub("", cells[1]).strip(", "), "its last column holds tests alone"


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(PAGE))))
def test_every_test_that_is_named_exists(file: str, name: str) -> None:
    assert (ROOT / file).is_file()
    assert name in names_in(file)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_has_its_rows(section: str) -> None:
    assert sum(row in SECTIONS[section] for row in ROWS) >= 5


def test_no_sentence_stands_twice_in_a_section() -> None:
    for section in SECTIONS.values():
        sentences = [row.split("|")[1] for row in section.splitlines() if row in ROWS]
        assert len(sentences) == len(set(sentences))


def test_the_store_is_all_there() -> None:
    assert sum(row in SECTIONS["kernel-store.md"] for row in ROWS) >= 50
