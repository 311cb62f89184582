import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.config.policy import Bound
from runtime.policy.bounds import violation, within

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@pytest.mark.parametrize("value", [-1, 1, 0, 0.5, -1.0])
def test_numbers_between_the_ends_pass(value):
    assert within(Bound(min=-1, max=1), value)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 1.0000001, -2, 10**400, -(10**400), True, "0", None, [0], {}, b"0"]
)
def test_what_is_outside_not_finite_or_no_number_does_not_pass(value):
    assert not within(Bound(min=-1, max=1), value)
    assert violation(Bound(min=-1, max=1), value)


def test_one_end_is_enough():
    assert within(Bound(min=2), 10**9)
    assert not within(Bound(min=2), math.inf)
    assert not within(Bound(max=2), -math.inf)


@pytest.mark.parametrize(
    ("allowed", "value", "passes"),
    [
        (["slow"], "slow", True),
        (["slow"], "slow\n", False),
        (["slow"], b"slow", False),
        ([1], 1, True),
        ([1], 1.0, True),
        ([1], True, False),
        ([True], 1, False),
        ([True], True, True),
        (["1"], 1, False),
        ([0.0], False, False),
        ([1], [1], False),
    ],
)
def test_only_the_values_named_pass_and_kinds_are_not_mixed(allowed, value, passes):
    assert within(Bound(values=allowed), value) is passes


def test_lengths_are_of_texts_and_lists():
    assert within(Bound(max_length=3), "äöü")
    assert within(Bound(max_length=3), [1, 2, 3])
    assert not within(Bound(max_length=3), "four")
    assert not within(Bound(max_length=3), 5)


def test_every_item_of_a_list_must_pass():
    bound = Bound(each=Bound(min=0, max=1), max_length=2)
    assert within(bound, [0, 1.0])
    assert not within(bound, [0, math.nan])
    assert not within(bound, [0, 0, 0])
    assert not within(bound, 0)
    assert not within(bound, {0: 1})


@given(ANYTHING)
def test_a_number_passes_exactly_when_it_lies_between(value):
    between = type(value) in (int, float) and -5 <= value <= 5
    assert within(Bound(min=-5, max=5), value) is between


@given(ANYTHING)
def test_the_words_about_anything_are_few(value):
    words = violation(Bound(values=["no such value"]), value)
    assert words is not None
    assert len(words) < 200
