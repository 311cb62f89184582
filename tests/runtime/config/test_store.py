from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.config.store import is_store_key, store_type


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int", int),
        ("any", Any),
        ("dict", dict[str, Any]),
        ("list", list[Any]),
        ("dict[str, float]", dict[str, float]),
        ("list[dict[str, int]]", list[dict[str, int]]),
        ("tuple[int, str]", tuple[int, str]),
        ("tuple[int]", tuple[int]),
        ("int | None", int | None),
        ("None | str", str | None),
        ("int | any", Any),
        (" bool ", bool),
    ],
)
def test_a_type_is_built_from_its_words(text, kind):
    assert store_type(text) == kind


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        ("dict[str, float]", {"a": 1.5}, True),
        ("dict[str, float]", {"a": "b"}, False),
        ("int | None", None, True),
        ("int | None", "x", False),
        ("tuple[int, str]", [1, "x"], True),
        ("list[bool]", [True, 1], False),
        ("any", {"what": ["ever"]}, True),
    ],
)
def test_values_are_checked_against_it(text, value, fits):
    def check():
        return msgspec.convert(value, store_type(text))

    if fits:
        check()
    else:
        with pytest.raises(msgspec.ValidationError):
            check()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "set[int]",
        "dict[int, str]",
        "dict[str]",
        "__import__('os')",
        "list[int",
        "int if 1 else str",
        "list[" * 20 + "int" + "]" * 20,
        "int|" * 100 + "int",
        "os.path",
        "'int'",
        "tuple[()]",
        "\0",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="type"):
        store_type(text)


@given(st.text(max_size=300))
def test_no_text_does_more_than_raise_value_error(text):
    try:
        store_type(text)
    except ValueError:
        return


@pytest.mark.parametrize("name", ["checkpoint", "notes-{session}", "{session}.x", "a" * 64])
def test_keys_that_may_be_declared(name):
    assert is_store_key(name)


@pytest.mark.parametrize("name", ["", ".hidden", "../x", "a/b", "a b", "{other}", "a\n", "a" * 65, "ä"])
def test_keys_that_may_not(name):
    assert not is_store_key(name)
