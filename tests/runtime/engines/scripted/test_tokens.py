"""How the scripted engine counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.engines import Message
from runtime.engines.scripted.tokens import count, tokens


@given(st.text())
def test_tokens_joined_are_the_text(text):
    assert "".join(tokens(text)) == text


@given(st.text(), st.text())
def test_a_longer_prompt_has_no_fewer_tokens(one, more):
    short = [Message(role="user", content=one)]
    assert count(short) <= count([*short, Message(role="assistant", content=more)])


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("hello, world", ["hello", ",", " world"]),
        ("  x\n", [" ", " x", "\n"]),
        ("a" * 20, ["a" * 16, "a" * 4]),
        ("", []),
    ],
)
def test_the_rule(text, cut):
    assert tokens(text) == cut
