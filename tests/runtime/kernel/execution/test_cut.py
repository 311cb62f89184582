from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.kernel.execution.cut import cut_lines, cut_text, length, shares


@given(st.lists(st.text(max_size=200), max_size=40), st.integers(100, 3000))
def test_lines_keep_both_ends_within_the_limit(lines: list[str], limit: int) -> None:
    found, lost = cut_lines(lines, limit)
    if length(lines) <= limit:
        assert (found, lost) == (lines, 0)
        return
    assert length(found) <= limit
    whole, text = "\n".join(lines), "\n".join(found)
    marked = text.index(f"[... {lost:,} characters cut ...]")
    head, tail = text[:marked], text[marked:].partition("]")[2]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert abs(len(head) - len(tail)) <= 2
    assert len(head) + lost + len(tail) == len(whole)


@given(st.text(max_size=500), st.integers(60, 400))
def test_a_text_keeps_both_ends_within_the_limit(text: str, limit: int) -> None:
    found, lost = cut_text(text, limit)
    if not lost:
        assert found == text
        return
    assert len(found) <= limit
    kept = (len(text) - lost) // 2
    assert found[:kept] == text[:kept]
    assert found[len(found) - kept :] == text[len(text) - kept :]


def test_equal_shares_when_all_want_too_much() -> None:
    assert shares([100, 100, 100], 60) == [20, 20, 20]


def test_who_wants_little_leaves_the_rest_to_the_others() -> None:
    assert shares([5, 1000, 0], 60) == [5, 55, 0]


@given(st.lists(st.integers(0, 1000), min_size=1), st.integers(0, 2000))
def test_shares_never_exceed_the_limit_or_the_wish(wanted: list[int], limit: int) -> None:
    granted = shares(wanted, limit)
    assert sum(granted) <= limit
    assert all(0 <= given <= wish for given, wish in zip(granted, wanted, strict=True))
    assert sum(granted) == min(limit, sum(wanted)) or sum(wanted) > limit
