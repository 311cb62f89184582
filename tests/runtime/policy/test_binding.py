import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.binding import Binding

MOVE = "def move(x: float, /, y: float = 0.5, *rest: int, fast: bool = False, at: object = ..., **others: str) -> None"


def test_positional_arguments_get_their_names():
    assert Binding("def f(a, b)").bind([1, 2], {}) == {"a": 1, "b": 2}


def test_literal_defaults_are_known_and_others_are_not():
    assert Binding(MOVE).bind([1], {}) == {"x": 1, "y": 0.5, "rest": [], "fast": False}


def test_the_rest_is_a_list_and_other_names_are_names():
    bound = Binding(MOVE).bind([1, 2, 3, 4], {"at": 5, "speed": "6"})
    assert bound == {"x": 1, "y": 2, "rest": [3, 4], "fast": False, "at": 5, "speed": "6"}


@pytest.mark.parametrize(
    ("args", "kwargs"), [([], {}), ([1, 2, 3], {}), ([1], {"a": 2}), ([1], {"c": 3}), ([], {"b": 1})]
)
def test_what_the_function_would_not_take_is_refused(args, kwargs):
    with pytest.raises(TypeError):
        Binding("def f(a, b=1)").bind(args, kwargs)


def test_a_name_that_would_hide_a_bounded_parameter_is_refused():
    with pytest.raises(TypeError, match="'x'"):
        Binding(MOVE).bind([1], {"x": 99})


def test_an_async_declaration_binds_too():
    assert Binding("async def f(url: str) -> str").bind(["a"], {}) == {"url": "a"}


@pytest.mark.parametrize("text", ["", "class A", "def f(a, a)", "x = 1", "def f(a):\n  pass\ndef g()", "def f(" * 200])
def test_what_declares_no_function_is_refused(text):
    with pytest.raises(ValueError, match="no declaration"):
        Binding(text)


def subject(a, b=2, *c, d=4, **e):
    return {"a": a, "b": b, "c": list(c), "d": d, **e}


@given(st.lists(st.integers(), max_size=4), st.dictionaries(st.sampled_from("abcdxyz"), st.integers()))
def test_it_binds_as_python_does(args, kwargs):
    binding = Binding(f"def subject{inspect.signature(subject)}")
    try:
        expected = subject(*args, **kwargs)
    except TypeError:
        with pytest.raises(TypeError):
            binding.bind(args, kwargs)
    else:
        if "c" not in kwargs:
            assert binding.bind(args, kwargs) == expected
