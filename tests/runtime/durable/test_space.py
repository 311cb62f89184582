"""The reserve on the disk."""

import errno
from pathlib import Path

import apsw
import pytest

from runtime.durable import space
from runtime.durable.space import Reserve, is_full


def test_it_holds_room_and_gives_it_up(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "log.reserve", 100_000)
    assert reserve.take()
    assert (tmp_path / "log.reserve").stat().st_size == 100_000
    assert reserve.take()
    reserve.give_up()
    reserve.give_up()
    assert not (tmp_path / "log.reserve").exists()


def test_it_is_not_taken_from_the_last_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "free_bytes", lambda _folder: space.SPARE_BYTES)
    assert not Reserve(tmp_path / "log.reserve", 100_000).take()
    assert not (tmp_path / "log.reserve").exists()


def test_a_folder_that_is_gone_has_no_room(tmp_path: Path) -> None:
    assert not Reserve(tmp_path / "gone" / "log.reserve", 100).take()


def test_which_errors_mean_full() -> None:
    assert is_full(apsw.FullError("full"))
    assert is_full(OSError(errno.ENOSPC, "full"))
    assert is_full(OSError(errno.EDQUOT, "quota"))
    assert not is_full(apsw.IOError("i/o"))
    assert not is_full(OSError(errno.EIO, "i/o"))
