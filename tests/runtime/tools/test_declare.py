import functools

import pytest

from runtime import tool
from runtime.abi.errors import ToolInvalid
from runtime.tools.declare import is_tool


def test_functions_are_marked_and_stay_what_they_are():
    @tool
    def plain(x):
        return x + 1

    @tool
    async def later(x):
        return x

    assert is_tool(plain)
    assert is_tool(later)
    assert plain(1) == 2


def gives():
    yield 1


async def gives_later():
    yield 1


@pytest.mark.parametrize("thing", [int, object(), gives, gives_later, functools.partial(print), None, print])
def test_what_is_no_function_of_one_value_is_refused(thing):
    with pytest.raises(ToolInvalid):
        tool(thing)


def test_a_decorated_function_is_one():
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    @tool
    @logged
    def plain(x):
        return x

    assert is_tool(plain)


def test_what_was_not_marked_is_none():
    assert not is_tool(lambda: 1)
    assert not is_tool(tool)
