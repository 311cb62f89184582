"""An exception as a short text, without reading any file."""

import linecache

from hypothesis import given
from hypothesis import strategies as st

from runtime.brain.failure import LIMIT, describe


def failing(message: str, depth: int) -> None:
    if depth:
        failing(message, depth - 1)
    raise ValueError(message)


@given(message=st.text(max_size=5000), depth=st.integers(0, 30))
def test_it_names_the_innermost_places_and_stays_short(message, depth):
    try:
        failing(message, depth)
    except ValueError as error:
        text = describe(error)
    assert text.startswith("ValueError: ")
    assert len(text) <= LIMIT
    assert "brain/test_failure.py:" in text.splitlines()[-1]
    assert text.splitlines()[-1].endswith("in failing")


def test_no_source_is_read():
    linecache.clearcache()
    try:
        failing("x", 2)
    except ValueError as error:
        describe(error)
    assert not linecache.cache


def test_an_exception_that_cannot_say_what_it_is():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    assert describe(Mute()) == "Mute: (its message can't be shown)"
