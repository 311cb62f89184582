"""What may be a name: no path, nothing that can't be seen, nothing that a disk may change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.errors import KnowledgeEscape
from runtime.knowledge.name import parts_of, shown

ESCAPES = {
    "up": "../../.env",
    "up inside": "notes/../../.env",
    "up at the end": "notes/..",
    "absolute": "/etc/passwd",
    "here": "./a.md",
    "here inside": "a/./b",
    "empty": "",
    "empty part": "a//b",
    "a folder": "notes/",
    "NUL": "a\0b",
    "backslash": "..\\..\\secret",
    "a drive": "C:\\x",
    "line end": "a\nb",
    "escape": "a\x1b[31m",
    "delete": "a\x7f",
    "C1": "a\x85b",
    "hidden": ".env",
    "hidden inside": "notes/.git/config",
    "a space before": " a.md",
    "a space behind": "a.md ",
    "a dot behind": "a.",
    "a no-break space": "a\u00a0b",
    "a zero-width space": "a\u200bb",
    "a joiner": "a\u200db",
    "right to left": "a\u202edm.",
    "a line separator": "a\u2028b",
    "a surrogate": "a\ud800",
    "not composed": "cafe\u0301.md",
    "a private letter": "\ue000",
    "too long": "x" * 256,
    "too long in bytes": "\u00e9" * 128,
    "too long as a whole": "/".join(["x" * 200] * 6),
    "far too long": "x" * 10_000_000,
    "too deep": "/".join("abcdefghijklmnopq"),
}
NAMES = [
    "a",
    "axon/deploy.md",
    "notes/incident-2026-08.md",
    "a b.txt",
    "caf\u00e9.md",
    "\u65e5\u672c\u8a9e/\u30e1\u30e2",
    "x" * 255,
]


@pytest.mark.parametrize("name", ESCAPES.values(), ids=ESCAPES.keys())
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(KnowledgeEscape) as caught:
        parts_of(name)
    assert len(caught.value.message) < 300
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_one_is_taken_apart_at_its_slashes(name: str) -> None:
    assert parts_of(name) == tuple(name.split("/"))


@given(st.text(max_size=40))
def test_any_text_is_refused_or_is_a_relative_path_that_stays_below(name: str) -> None:
    try:
        parts = parts_of(name)
    except KnowledgeEscape:
        return
    assert "/".join(parts) == name
    for part in parts:
        assert part not in ("", ".", "..")
        assert not set(part) & set("/\\\0")
        assert len(part.encode()) <= 255


@given(st.text(max_size=300))
def test_a_shown_name_is_one_printable_line(name: str) -> None:
    text = shown(name)
    assert text.isprintable()
    text.encode()
