"""Signatures as Python source: they parse, and say what the function takes."""

from __future__ import annotations

import ast
import enum
import inspect
import math
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.policy.binding import Binding
from runtime.tools.declaration import declaration, literal


class Colour(enum.IntEnum):
    RED = 1


def plain(x: float, y: float = 0.5, *, fast: bool = False) -> None: ...
def nothing(): ...
def bare(a, b=None, /, c="x", *rest, d=(1, 2), **others): ...
def only(*, a: int): ...
def positional(a: int, /): ...
async def later(url: str) -> str: ...
def odd(a=object(), b=math.inf, c=Colour.RED, d=..., e=[object()]): ...  # noqa: B006, B008


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, "def plain(x: float, y: float = 0.5, *, fast: bool = False) -> None"),
        (nothing, "def nothing()"),
        (bare, "def bare(a, b=None, /, c='x', *rest, d=(1, 2), **others)"),
        (only, "def only(*, a: int)"),
        (positional, "def positional(a: int, /)"),
        (later, "async def later(url: str) -> str"),
        (odd, "def odd(a=..., b=..., c=..., d=..., e=...)"),
    ],
)
def test_a_declaration_says_what_the_function_takes(function, expected):
    assert declaration(function, function.__name__) == expected


def test_annotations_that_are_objects_are_written_as_source():
    def f(a, b, c): ...

    f.__annotations__ = {
        "a": list[int] | None,
        "b": typing.Annotated[float, "metres"],
        "c": "no expression!",
        "return": int,
    }
    text = declaration(f, "f")
    assert text == "def f(a: list[int] | None, b: Annotated[float, 'metres'], c: 'no expression!') -> int"


def test_the_name_is_the_one_it_is_offered_under():
    assert declaration(nothing, "other") == "def other()"


@pytest.mark.parametrize("function", [plain, nothing, bare, only, positional, later, odd])
def test_what_is_declared_parses_and_binds_as_the_function_does(function):
    text = declaration(function, function.__name__)
    ast.parse(f"{text}: ...")
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    assert Binding(text).names == set(names)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner) | st.sets(st.integers()),
    max_leaves=8,
)


@given(VALUES)
def test_a_default_is_a_literal_that_means_the_same_or_none(value):
    text = literal(value)
    assert text == "..." or ast.literal_eval(text) == value


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError

    __eq__ = __bool__ = None  # type: ignore[assignment]


def test_a_default_that_cannot_even_be_shown_is_left_out():
    assert literal(Rude()) == "..."
