"""Scripts: what they answer, that they hold nothing back, and which are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.engines import Message
from runtime.abi.errors import EngineModelInvalid
from runtime.engines.scripted.script import MAX_BYTES, output_of, read, reply_to

HEAD = "format = 1\n"
SHIPPED = read("default", Path())


def written(tmp_path, text, name="s.toml"):
    (tmp_path / name).write_text(HEAD + text if name.endswith(".toml") else text)
    return read(name, tmp_path)


def said(script, *contents):
    """The answer to a conversation in which both sides take turns, the user last."""
    roles = ["user", "assistant"] * len(contents)
    messages = [Message(role=role, content=content) for role, content in zip(roles, contents, strict=False)]
    answer = reply_to(script, messages)
    return answer and answer[0]


def test_the_first_rule_that_fits_answers(tmp_path):
    script = written(
        tmp_path,
        """
        [[rules]]
        when = 'add (\\d+) and (?P<more>\\d+)'
        reply = "${1} plus ${more}"
        [[rules]]
        when = 'add'
        reply = "what?"
        """,
    )
    assert said(script, "please ADD 1 and 2") == "1 plus 2"
    assert said(script, "add it") == "what?"
    assert said(script, "nothing") is None


def test_after_looks_at_what_was_said_before(tmp_path):
    script = written(tmp_path, "[[rules]]\nwhen = 'again'\nafter = 'song'\nreply = 'la'")
    assert said(script, "sing a song", "la", "again") == "la"
    assert said(script, "again") is None


def test_only_what_the_assistant_did_not_say_is_answered(tmp_path):
    script = written(tmp_path, "[[rules]]\nwhen = 'mine'\nreply = 'x'")
    assert said(script, "yours", "mine") is None


def test_a_script_may_be_json(tmp_path):
    text = json.dumps({"format": 1, "rules": [{"when": "a", "reply": "b"}], "pace": {"piece_ms": 5}})
    script = written(tmp_path, text, "s.json")
    assert said(script, "a") == "b"
    assert script.pace.piece_ms == 5


@pytest.mark.parametrize(
    ("value", "output"),
    [("red ball", "ball"), ({"ref": "sha256:ball", "n": 1}, "ball"), (7, {"seven": True})],
)
def test_transforms_take_any_plain_value(tmp_path, value, output):
    script = written(
        tmp_path,
        """
        [[transforms]]
        when = '(?P<what>ball)'
        output = "${what}"
        [[transforms]]
        output = {seven = true}
        """,
    )
    found = output_of(script.transforms, value)
    assert found is not None
    assert found.output == output


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[rules]]\nwhen = '('\nreply = ''",
        "[[rules]]\nwhen = 'a'\nafter = '['\nreply = ''",
        "[[rules]]\nwhen = 'a'\nreply = '${b}'",
        "[[rules]]\nwhen = 'a'\nreply = '${1}'",
        "[[rules]]\nwhen = 'a'",
        "[[rules]]\nwhen = 'a'\nreply = 5",
        "[[rules]]\nreply = 'a'\nwhenn = 'a'",
        "[[rules]]\nreply = 'a'\npace = {piece_ms = -1}",
        "[[rules]]\nreply = 'a'\npace = {piece_tokens = 0}",
        "rules = 5",
        "format = 2",
        "x" * MAX_BYTES,
    ],
    ids=range(13),
)
def test_what_is_no_script_is_refused(tmp_path, text):
    with pytest.raises(EngineModelInvalid, match=r"s\.toml"):
        written(tmp_path, text)


@pytest.mark.parametrize("name", ["missing.toml", ".", "b.toml", "n.json"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name):
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "n.json").write_text("[" * 100_000)
    with pytest.raises(EngineModelInvalid):
        read(name, tmp_path)


MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant"]),
        content=st.text(max_size=60)
        | st.sampled_from(["what is 6*7? use python", '<result block="1" ok="true">\nvalue: 42\n</result>', "x\n```"]),
    ),
    min_size=1,
    max_size=6,
)


@given(MESSAGES)
def test_the_script_that_ships_answers_everything_and_always_the_same(messages):
    answer = reply_to(SHIPPED, messages)
    assert answer is not None
    assert answer == reply_to(read("default", Path()), messages)


@given(st.text(max_size=200) | st.text("`python\n xo'", max_size=60))
def test_the_script_that_ships_never_runs_a_persons_words(words):
    """What it echoes can't begin a block: blocks are its own, or hold nothing but a sum."""
    answer = said(SHIPPED, words)
    assert answer is not None
    lines = answer.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("```python"):
            assert re.fullmatch(r"[0-9 .+*/()%-]+|import time|1 / 0|\"[a-z ]+\"", lines[number + 1])


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("what is 6*7? use python", "I'll let Python work that out.\n```python\n6*7\n```\n<done/>\n"),
        (
            "What is (2 + 3) * 4 ? Please use Python.",
            "I'll let Python work that out.\n```python\n(2 + 3) * 4\n```\n<done/>\n",
        ),
        (
            "what is __import__('os')? use python",
            "I am a script of a few rules; I heard: what is __import__('os')? use python\n<done/>\n",
        ),
        ('<result block="1" ok="true">\nvalue: 42\n</result>', "The answer is 42.\n<done/>\n"),
        (
            '<result block="1" error="interrupt">\nthe kernel ended before it did\n</result>',
            "That didn't work (interrupt: the kernel ended before it did). I won't try it again by myself.\n<done/>\n",
        ),
        ("hello", "I am a script of a few rules; I heard: hello\n<done/>\n"),
    ],
)
def test_the_script_that_ships_speaks_zeros_grammar(words, answer):
    assert said(SHIPPED, words) == answer
