"""The description in an entry's front matter, and "" for all that isn't one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.knowledge.description import HEAD_BYTES, MAX_DESCRIPTION, description_of

DECLARED = {
    "plain": ("---\ndescription: How to dock\n---\n# Docking\n", "How to dock"),
    "among others": ("---\ntitle: A\ndescription: B\ntags: [x]\n---\n", "B"),
    "closed by dots": ("---\ndescription: A\n...\n", "A"),
    "at the file's end": ("---\ndescription: A\n---", "A"),
    "double quotes": ('---\ndescription: "A: \\"b\\" # c"\n---\n', 'A: "b" # c'),
    "single quotes": ("---\ndescription: 'it''s'\n---\n", "it's"),
    "a colon inside": ("---\ndescription: Port: 8080\n---\n", "Port: 8080"),
    "a comment": ("---\ndescription: A # no part of it\n---\n", "A"),
    "a hash in a word": ("---\ndescription: C#\n---\n", "C#"),
    "a block": ("---\ndescription: >-\n  one\n  two\nnext: x\n---\n", "one two"),
    "lines kept": ("---\ndescription: |\n  one\n\n  two\n---\n", "one two"),
    "goes on below": ("---\ndescription: one\n  two\n---\n", "one two"),
    "begins below": ("---\ndescription:\n  one\n---\n", "one"),
    "a number": ("---\ndescription: 42\n---\n", "42"),
    "Windows": ("---\r\ndescription: A\r\n---\r\n", "A"),
    "a byte order mark": ("\ufeff---\ndescription: A\n---\n", "A"),
    "the first of two": ("---\ndescription: A\ndescription: B\n---\n", "A"),
    "a terminal's escape": ('---\ndescription: "a\x1b[31m b"\n---\n', "a [31m b"),
    "any letters": ("---\ndescription: \u00dcber \u65e5\u672c\n---\n", "\u00dcber \u65e5\u672c"),
}
NOT_DECLARED = {
    "empty": "",
    "no front matter": "description: A\n",
    "text before it": "\n---\ndescription: A\n---\n",
    "never closed": "---\ndescription: A\n",
    "a rule of dashes": "----\ndescription: A\n---\n",
    "no such key": "---\ntitle: A\n---\ndescription: A\n",
    "nested": "---\nmeta:\n  description: A\n---\n",
    "another key": "---\nmydescription: A\n---\n",
    "no space": "---\ndescription:A\n---\n",
    "nothing": "---\ndescription:\n---\n",
    "null": "---\ndescription: ~\n---\n",
    "a list": "---\ndescription: [a, b]\n---\n",
    "a map": "---\ndescription: {a: b}\n---\n",
    "an alias": "---\ndescription: *a\n---\n",
    "a tag": "---\ndescription: !!python/object:os.system x\n---\n",
    "an open quote": '---\ndescription: "A\n---\n',
    "JSON": '{"description": "A"}',
    "CSV": "description,size\nA,1\n",
}


@pytest.mark.parametrize(("text", "wanted"), DECLARED.values(), ids=DECLARED.keys())
def test_it_is_read(text: str, wanted: str) -> None:
    assert description_of(text.encode()) == wanted


@pytest.mark.parametrize("text", NOT_DECLARED.values(), ids=NOT_DECLARED.keys())
def test_an_entry_that_declares_none_has_an_empty_one(text: str) -> None:
    assert description_of(text.encode()) == ""


def test_bytes_that_are_no_text_have_none() -> None:
    assert description_of(b"\x89PNG\r\n\x1a\n") == ""
    assert description_of(b"---\ndescription: \xff\xfe\n---\n") == ""


def test_a_long_one_is_cut_and_the_cut_is_seen() -> None:
    found = description_of(f"---\ndescription: {'word ' * 300}\n---\n".encode())
    assert len(found) == MAX_DESCRIPTION
    assert found.endswith("…")


def test_front_matter_longer_than_the_head_has_none() -> None:
    text = f"---\ndescription: A\nx: {'y' * HEAD_BYTES}\n---\n".encode()
    assert description_of(text[:HEAD_BYTES]) == ""


@given(st.binary(max_size=200).map(lambda rest: b"---\ndescription: " + rest))
def test_any_bytes_give_one_printable_line(head: bytes) -> None:
    found = description_of(head)
    assert found.isprintable()
    assert len(found) <= MAX_DESCRIPTION
