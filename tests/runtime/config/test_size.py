import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.config.size import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("2 GB", 2 * 10**9), ("256MiB", 256 * 2**20), ("17", 17), ("1.5 kB", 1500), (" 3 B ", 3), ("1 TiB", 2**40)],
)
def test_sizes_are_read(text, size_bytes):
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "GB", "-1 GB", "2 gigs", "1e9", "2 GB!", "nan", "٣ GB", "1." + "0" * 50])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@given(st.text(max_size=40))
def test_no_text_does_more_than_raise_value_error(text):
    try:
        assert parse_size(text) >= 0
    except ValueError:
        return


@pytest.mark.parametrize(("size_bytes", "text"), [(0, "0 B"), (1500, "1.5 kB"), (2 * 10**9, "2 GB"), (5e12, "5 TB")])
def test_sizes_are_shown_short(size_bytes, text):
    assert format_size(size_bytes) == text
