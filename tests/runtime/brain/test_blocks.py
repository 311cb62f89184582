"""The block grammar: any cutting of an answer gives the same parts, and words are told as early as they can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.brain.blocks import EXCERPT, Block, BlockParser, Done, Part, Unclosed, Words

LINES = st.sampled_from(
    ["```python", "```", "```python ", "``` \t", "```json", "<done/>", "<done/> ", " <done/>", "``", "`", "<done", "a",
     "print('```')", "", " ", "```python x", "x ```", "é\u2028\x0b", "\r"]
)  # fmt: skip
ANSWERS = st.builds(
    lambda lines, end: "\n".join(lines) + end,
    st.lists(LINES | st.text(max_size=5), max_size=12),
    st.sampled_from(["", "\n"]),
)


def parts_of(pieces: list[str]) -> list[Part]:
    """All parts, neighbouring words joined."""
    parser = BlockParser()
    found: list[Part] = []
    for part in [*(part for piece in pieces for part in parser.feed(piece)), *parser.finish()]:
        if isinstance(part, Words) and found and isinstance(found[-1], Words):
            found[-1] = Words(found[-1].text + part.text)
        else:
            found.append(part)
    return found


@given(ANSWERS, st.data())
def test_any_cutting_gives_the_same_parts(answer, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(answer)), max_size=20)))
    pieces = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    assert parts_of(pieces) == parts_of([answer]) == parts_of(list(answer))


@given(ANSWERS)
def test_nothing_is_lost(answer):
    """Words and blocks together are the answer without its marks."""
    kept = "".join(part.text if isinstance(part, Words) else getattr(part, "code", "") for part in parts_of([answer]))
    marks = ("```python", "```", "<done/>")
    rest = [line for line in answer.split("\n") if line.rstrip() not in marks]
    assert [line for line in kept.split("\n") if line.rstrip() not in ("```", "<done/>", "```python", "")] == [
        line for line in rest if line.rstrip()
    ]


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("Hello.", [Words("Hello.")]),
        ("One\n```python\nx = 1\n```\nTwo\n<done/>\n", [Words("One\n"), Block("x = 1\n"), Words("Two\n"), Done()]),
        ("```python\na\n```\n```python\nb\n```", [Block("a\n"), Block("b\n")]),
        ("```python  \r\na\r\n``` \n", [Block("a\r\n")]),
        ("```python\n```\n", [Block("")]),
        ("```json\n{}\n```\n", [Words("```json\n{}\n```\n")]),
        ("say <done/> now", [Words("say <done/> now")]),
        ("<done/>", [Done()]),
        ("```python\n<done/>\n```python\n```", [Block("<done/>\n```python\n")]),
        ("Look:\n```python\nx = 1\n", [Words("Look:\n"), Unclosed("x = 1\n")]),
        ("```python", [Unclosed("")]),
        ("```pyth", [Words("```pyth")]),
        ("", []),
    ],
)
def test_the_grammar(answer, parts):
    assert parts_of(list(answer)) == parts


def test_words_are_told_as_soon_as_they_can_be_no_mark():
    parser = BlockParser()
    assert parser.feed("Hel") == [Words("Hel")]
    assert parser.feed("lo\n``") == [Words("lo\n")]
    assert parser.feed("`p") == []
    assert parser.feed("x") == [Words("```px")]
    assert parser.feed("\n<do") == [Words("\n")]
    assert parser.feed("ve") == [Words("<dove")]


def test_an_unclosed_block_is_shown_by_its_beginning():
    (part,) = parts_of(["```python\n" + "x = 1\n" * 1000])
    assert isinstance(part, Unclosed)
    assert part.excerpt.startswith("```python\nx = 1\n")
    assert len(part.excerpt) == EXCERPT
