"""The emergency stop's latch on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.kernel.stop import FILE, StopLatch


def test_an_agent_that_was_never_stopped_isnt_latched(tmp_path: Path) -> None:
    assert not StopLatch.load(tmp_path).latched


def test_a_stop_survives_a_restart_with_its_first_reason(tmp_path: Path) -> None:
    latch = StopLatch.load(tmp_path)
    latch.latch(by="ann", reason="smoke")
    latch.latch(by="bob", reason="later")
    latch.save()
    found = StopLatch.load(tmp_path)
    assert found.latched
    assert (found.state.by, found.state.reason) == ("ann", "smoke")


def test_clearing_survives_a_restart(tmp_path: Path) -> None:
    latch = StopLatch.load(tmp_path)
    latch.latch(by="ann")
    latch.save()
    latch.clear(by="ann")
    latch.save()
    assert not StopLatch.load(tmp_path).latched


@pytest.mark.parametrize("content", [b"", b"{", b"null", b'{"latched": "no"}', b"\xff\xfe", b"{}"])
def test_an_unreadable_file_means_latched(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    latch = StopLatch.load(tmp_path)
    assert latch.latched
    assert "can't be read" in latch.state.reason


def test_a_folder_in_its_place_means_latched(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    assert StopLatch.load(tmp_path).latched


def test_what_was_done_beside_the_log_waits_for_the_next_kernel(tmp_path: Path) -> None:
    latch = StopLatch.load(tmp_path)
    latch.latch(by="ann", reason="smoke")
    latch.note_unlogged()
    latch.clear(by="bob")
    latch.note_unlogged()
    latch.save()
    found = StopLatch.load(tmp_path)
    assert [(change.latched, change.by) for change in found.take_unlogged()] == [(True, "ann"), (False, "bob")]
    found.save()
    assert StopLatch.load(tmp_path).take_unlogged() == ()
