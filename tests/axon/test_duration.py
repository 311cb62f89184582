import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("20s", 20), ("20", 20), ("1m30s", 90), ("2h", 7200), ("0.5s", 0.5), ("1h1m1s", 3661)]
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "0s", "-1s", "1d", "20 s 5", "nan", "1s2m", "٣s"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="20s"):
        parse_duration(text)


@given(st.text(max_size=20))
def test_no_text_does_more_than_raise_value_error(text):
    try:
        assert parse_duration(text) > 0
    except ValueError:
        return
