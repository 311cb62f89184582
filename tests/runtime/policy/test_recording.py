import math

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.policy.recording import MAX_BLOCKS, Allowance, shown

S = 1_000_000
TEXTS = st.sampled_from(["", "x", "ä" * 150, "y" * 5000]) | st.text(max_size=5)
DEEP = st.recursive(
    st.none() | st.integers() | st.floats() | TEXTS | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(TEXTS | st.integers(), inner, max_size=20),
    max_leaves=20,
)


def test_short_arguments_are_kept_as_they_are():
    assert shown({"x": 1.5, "on": True, "to": ["a", None]}) == {"x": 1.5, "on": True, "to": ["a", None]}


def test_what_json_lacks_is_text():
    assert shown({"x": math.nan, "y": -math.inf, "n": 10**30, "b": b"abc"}) == {
        "x": "nan",
        "y": "-inf",
        "n": "a whole number of 100 bits",
        "b": "3 bytes",
    }


def test_what_is_long_is_cut_and_says_so():
    found = shown({"text": "a" * 5000, "list": list(range(5000))})
    assert found["text"] == "a" * 200 + "... (5000 characters)"
    assert found["list"][-1] == "... 4984 more"


@settings(max_examples=50)
@given(st.dictionaries(TEXTS, DEEP, max_size=20))
def test_anything_becomes_a_small_piece_of_json(arguments):
    assert len(msgspec.json.encode(shown(arguments))) < 60_000


def test_a_mountain_of_small_pieces_is_cut_too():
    mountain = [["x" * 150] * 16] * 16
    assert len(msgspec.json.encode(shown({"a": mountain, "b": [mountain] * 16}))) < 1000


def test_a_block_gets_so_many_entries_and_the_rest_is_counted():
    allowance = Allowance(a_block=2, a_second=100)
    assert [allowance.take("b1", "arm.move", 0) for _ in range(5)] == [True, True, False, False, False]
    assert allowance.take("b2", "arm.move", 0)
    assert allowance.left_out() == {"arm.move": 3}
    assert allowance.left_out() == {}


def test_a_second_gets_so_many_whatever_the_blocks():
    allowance = Allowance(a_block=2, a_second=3)
    assert sum(allowance.take(f"b{n}", "a.b", 0) for n in range(10)) == 3
    assert allowance.take("b1", "a.b", S)


def test_a_flood_of_blocks_and_names_takes_no_more_memory():
    allowance = Allowance(a_second=0)
    for n in range(4 * MAX_BLOCKS):
        allowance.take(f"b{n}", f"m.f{n}", 0)
    assert len(allowance._blocks) == MAX_BLOCKS
    left_out = allowance.left_out()
    assert sum(left_out.values()) == 4 * MAX_BLOCKS
    assert len(left_out) <= 17
