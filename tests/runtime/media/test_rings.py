"""One suite for every media store, and what the one on disk adds."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.durable.faults import Failing
from runtime.media import disk
from runtime.media.disk import DiskRing
from runtime.media.ring import MediaRing, MemoryRing

Make = Callable[..., MediaRing]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Make]:
    rings: list[MediaRing] = []

    def making(*, max_bytes: int = 10_000, max_age_s: float = 100.0) -> MediaRing:
        if request.param == "memory":
            rings.append(MemoryRing(max_bytes=max_bytes, max_age_s=max_age_s, now=clock))
        else:
            rings.append(DiskRing(tmp_path, max_bytes=max_bytes, max_age_s=max_age_s, now=clock))
        return rings[-1]

    yield making
    for ring in rings:
        ring.close()


def test_a_ref_is_the_digest_and_readable_at_once(make: Make) -> None:
    ring = make()
    ref = ring.stage(b"frame")
    assert ref == "sha256:" + hashlib.sha256(b"frame").hexdigest()
    assert ring.get(ref) == b"frame"
    ring.flush()
    assert ring.get(ref) == b"frame"
    assert ring.size_bytes == 5


def test_the_same_bytes_are_kept_once(make: Make) -> None:
    ring = make()
    for _ in range(3):
        ring.stage(b"frame")
        ring.flush()
    assert ring.size_bytes == 5


def test_the_oldest_leave_when_the_room_is_over(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "RECENT_BYTES", 0)
    ring = make(max_bytes=1000)
    refs = []
    for number in range(5):
        refs.append(ring.stage(bytes([number]) * 300))
        ring.flush()
    assert [ring.get(ref) is not None for ref in refs] == [False, False, True, True, True]
    assert ring.size_bytes == 900


def test_the_oldest_leave_when_their_time_is_over(make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "RECENT_BYTES", 0)
    ring = make(max_age_s=100)
    old = ring.stage(b"old")
    ring.flush()
    clock.now += 101
    new = ring.stage(b"new")
    ring.flush()
    assert (ring.get(old), ring.get(new)) == (None, b"new")


@pytest.mark.parametrize("ref", ["", "sha256:", "sha256:zz", "sha256:" + "0" * 64, "md5:1"])
def test_an_unknown_ref_is_none(make: Make, ref: str) -> None:
    assert make().get(ref) is None


def test_what_was_flushed_is_there_after_a_restart(tmp_path: Path) -> None:
    ring = DiskRing(tmp_path, max_bytes=10_000)
    kept = ring.stage(b"kept")
    ring.flush()
    lost = ring.stage(b"lost")
    again = DiskRing(tmp_path, max_bytes=10_000)
    assert (again.get(kept), again.get(lost)) == (b"kept", None)
    again.close()
    ring.close()


def test_damaged_bytes_read_as_none(tmp_path: Path) -> None:
    ring = DiskRing(tmp_path, max_bytes=100_000)
    ref = ring.stage(b"x" * 9000)
    ring.close()
    file = tmp_path / "media.db"
    data = bytearray(file.read_bytes())
    at = data.index(b"x" * 100)
    data[at + 50] ^= 1
    file.write_bytes(data)
    again = DiskRing(tmp_path, max_bytes=100_000)
    assert again.get(ref) is None
    again.close()


def test_a_file_that_can_t_be_read_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "media.db").write_bytes(b"no database at all" * 300)
    ring = DiskRing(tmp_path, max_bytes=1000)
    assert ring.set_aside == "media.db.damaged-1"
    ref = ring.stage(b"frame")
    ring.flush()
    assert ring.get(ref) == b"frame"
    ring.close()


@pytest.fixture
def failing() -> Iterator[Any]:
    layer = Failing("axon-test-media", lambda _operation, _file: None)
    yield layer
    layer.close()


@pytest.mark.parametrize("fault", ["eio", "eio-after", "short", "full"])
def test_a_disk_that_fails_costs_no_byte_that_memory_holds(
    tmp_path: Path, clock: Clock, failing: Any, fault: str
) -> None:
    ring = DiskRing(tmp_path, max_bytes=10_000, vfs="axon-test-media", now=clock)
    failing.decide = lambda operation, file: fault if operation == "sync" else None
    ref = ring.stage(b"frame")
    ring.flush()
    assert ring.failures == 1
    assert ring.get(ref) == b"frame"
    failing.decide = lambda operation, file: None
    ring.flush()  # too soon: it isn't tried at every commit
    assert ring.resident_bytes == 5
    clock.now += 60
    ring.flush()
    ring.close()
    again = DiskRing(tmp_path, max_bytes=10_000)
    assert again.get(ref) == b"frame"
    again.close()


def test_memory_is_bounded_while_the_disk_fails(tmp_path: Path, failing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MAX_STAGED_BYTES", 1000)
    ring = DiskRing(tmp_path, max_bytes=10_000, vfs="axon-test-media")
    failing.decide = lambda operation, file: "eio" if operation == "write" else None
    refs = []
    for number in range(5):
        refs.append(ring.stage(bytes([number]) * 400))
        ring.flush()
    assert ring.resident_bytes <= 1000
    assert ring.get(refs[-1]) is not None
    failing.decide = lambda operation, file: None
    ring.close()


def test_media_never_take_the_last_room_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "RECENT_BYTES", 0)
    ring = DiskRing(tmp_path, max_bytes=10_000)
    first = ring.stage(b"a" * 500)
    ring.flush()
    monkeypatch.setattr(disk, "free_bytes", lambda _folder: 1)
    second = ring.stage(b"b" * 500)
    ring.flush()
    assert (ring.get(first), ring.get(second)) == (None, b"b" * 500)
    assert ring.size_bytes == 500
    ring.close()


def test_shed_gives_the_disk_its_room_back(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "RECENT_BYTES", 0)
    ring = DiskRing(tmp_path, max_bytes=10_000, now=clock)
    ref = ring.stage(b"a" * 500)
    ring.flush()
    ring.shed()
    assert list(tmp_path.iterdir()) == []
    assert ring.get(ref) is None
    clock.now += 60
    again = ring.stage(b"b")
    ring.flush()
    assert ring.get(again) == b"b"
    ring.close()
