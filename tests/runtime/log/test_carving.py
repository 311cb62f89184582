"""Reading pages and records without SQLite."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.log.carving import Pages, first_key, rows_of, varint
from runtime.log.wal import Frame, WalLeft


@settings(deadline=None, max_examples=50)  # the machine may be busy
@given(st.binary(min_size=1, max_size=300))
def test_no_page_breaks_the_parser(pattern: bytes) -> None:
    page = (pattern * 4096)[:4096]
    pages = Pages.__new__(Pages)
    pages._frames = {}
    pages.numbered = lambda number, newest: b""  # type: ignore[method-assign]
    list(rows_of(pages, b"\x0d" + page[1:], wanted=1))
    assert first_key(page) >= 0


@pytest.mark.parametrize(("data", "value"), [(b"\x05", 5), (b"\x81\x00", 128), (b"\xff" * 9, 2**64 - 1)])
def test_varints(data: bytes, value: int) -> None:
    assert varint(data, 0) == (value, len(data))


SALTS, OLD = (1, 2), (9, 9)
COMMIT, PAGE = Frame(2, 10, SALTS), Frame(3, 0, SALTS)


@pytest.mark.parametrize(
    ("frames", "valid", "commits"),
    [
        ([PAGE, COMMIT, COMMIT], 3, 0),
        ([PAGE, COMMIT, COMMIT], 2, 0),  # only the repetition of a commit's last frame is lost
        ([PAGE, COMMIT, COMMIT, PAGE, COMMIT], 3, 1),
        ([PAGE, COMMIT, COMMIT, PAGE, COMMIT, COMMIT], 3, 1),
        ([PAGE, COMMIT, COMMIT, PAGE, COMMIT, COMMIT, PAGE, COMMIT], 3, 2),
        ([PAGE, COMMIT, COMMIT, PAGE, PAGE], 3, 0),  # was never committed
        ([PAGE, COMMIT, Frame(2, 10, OLD), Frame(2, 10, OLD)], 2, 0),  # from before the log was begun anew
    ],
)
def test_commits_behind_the_last_that_holds(frames: list[Frame], valid: int, commits: int) -> None:
    told = WalLeft(header_holds=True, salts=SALTS, frames=frames).lost(valid_frames=valid)
    assert (told is None) == (commits == 0)
    assert commits < 2 or str(commits) in (told or "")


def test_a_header_that_does_not_hold() -> None:
    flipped = WalLeft(header_holds=False, salts=(1, 3), frames=[PAGE, COMMIT])
    begun_anew = WalLeft(header_holds=False, salts=(2, 77), frames=[PAGE, COMMIT])
    assert "header" in (flipped.lost(valid_frames=0) or "")
    assert begun_anew.lost(valid_frames=0) is None
