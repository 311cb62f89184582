"""Which session a start continues."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.abi.errors import SessionLocked, SessionNotFound
from runtime.kernel.session import LAST, Session


def take(data: Path, asked: str | None = None) -> str:
    session = Session.take(data, asked)
    session.release()
    return session.id


def test_the_first_start_makes_a_session_and_the_next_resumes_it(tmp_path: Path) -> None:
    assert take(tmp_path) == take(tmp_path)


def test_new_makes_another_one_which_is_then_the_last(tmp_path: Path) -> None:
    first = take(tmp_path)
    second = take(tmp_path, "new")
    assert second != first
    assert take(tmp_path) == second


def test_an_older_session_can_be_asked_for(tmp_path: Path) -> None:
    first = take(tmp_path)
    take(tmp_path, "new")
    assert take(tmp_path, first) == first


@pytest.mark.parametrize("asked", ["nowhere", "../x", "", ".", "a/b"])
def test_an_unknown_session_is_refused(tmp_path: Path, asked: str) -> None:
    known = take(tmp_path)
    with pytest.raises(SessionNotFound, match="there is no session") as caught:
        Session.take(tmp_path, asked)
    assert known in caught.value.hint


def test_a_second_kernel_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    held = Session.take(tmp_path, None)
    with pytest.raises(SessionLocked, match=r"another kernel \(pid \d+\)"):
        Session.take(tmp_path, None)
    held.release()
    assert take(tmp_path) == held.id


def test_a_lost_note_of_the_last_session_falls_back_to_the_newest(tmp_path: Path) -> None:
    take(tmp_path)
    newest = take(tmp_path, "new")
    (tmp_path / LAST).unlink()
    assert take(tmp_path) == newest


@pytest.mark.parametrize("content", [b"", b"\n", b"not-there", b"../.."])
def test_a_damaged_note_falls_back_to_the_newest(tmp_path: Path, content: bytes) -> None:
    newest = take(tmp_path)
    (tmp_path / LAST).write_bytes(content)
    assert take(tmp_path) == newest
