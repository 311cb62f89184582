import collections
import dataclasses
import datetime
import enum
import math

import msgspec
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.errors import ToolFailed
from runtime.tools.values import packed

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=9)
    | st.binary(max_size=9),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


@dataclasses.dataclass
class Pose:
    x: float
    tags: set[str]


class Mode(enum.Enum):
    SLOW = "slow"


def crossed(value: object) -> object:
    return msgspec.msgpack.decode(packed(value))


@given(PLAIN)
def test_plain_values_cross_unchanged(value):
    assert crossed(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Pose(1.5, {"a"}), {"x": 1.5, "tags": ["a"]}),
        ((1, (2,)), [1, [2]]),
        (Mode.SLOW, "slow"),
        (numpy.float64(0.5), 0.5),
        (numpy.arange(3).tolist(), [0, 1, 2]),
        (bytearray(b"ab"), b"ab"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (collections.namedtuple("P", "x")(1), [1]),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
    ],
)
def test_what_is_nearly_plain_becomes_plain(value, expected):
    assert crossed(value) == expected


def test_nan_and_infinity_cross():
    found = crossed([math.nan, math.inf])
    assert math.isnan(found[0])
    assert found[1] == math.inf


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (object(), "object"),
        (lambda: 1, "function"),
        (1j, "complex"),
        (numpy.zeros(2), "numpy.ndarray"),
        (numpy.int64(1), "numpy.int64"),
        ({"a": [range(3)]}, "range"),
        (2**64, "int"),
        ("\ud800", "str"),
    ],
)
def test_what_cannot_be_carried_is_named_by_its_type(value, named):
    with pytest.raises(ToolFailed, match=f"a {named}"):
        packed(value)


def test_what_contains_itself_is_refused():
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ToolFailed, match="contains itself"):
        packed(circle)


def test_what_is_too_long_is_refused():
    with pytest.raises(ToolFailed, match="above 1048576"):
        packed(b"x" * 5_000_000)
