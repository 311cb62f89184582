"""The model itself: what its cuts leave, so that a promise kept on it means something."""

from __future__ import annotations

import pytest

from .disk import CUTS, FILE, FOLDER, Disk, Fault


def written(disk: Disk, path: str, data: bytes) -> None:
    disk.write(disk.make(path, FILE), data, 0)


def names(disk: Disk) -> set[str]:
    return set(disk.root.names)


@pytest.mark.parametrize("cut", CUTS)
def test_what_was_synced_is_left_by_every_cut(cut: str) -> None:
    disk = Disk()
    written(disk, "/a", b"old")
    disk.sync(disk.find("/a"))
    disk.sync(disk.root)
    assert bytes(disk.cut(cut, 1).find("/a").live) == b"old"


def test_a_name_needs_its_folders_sync() -> None:
    disk = Disk()
    written(disk, "/a", b"old")
    disk.sync(disk.find("/a"))
    assert names(disk.cut("dropped", 1)) == set()
    assert names(disk.cut("kept", 1)) == {"a"}


def test_bytes_need_their_files_sync_though_the_name_is_there() -> None:
    disk = Disk()
    written(disk, "/a", b"old")
    disk.sync(disk.root)
    assert bytes(disk.cut("dropped", 1).find("/a").live) == b""


def test_a_torn_write_is_there_sector_by_sector() -> None:
    disk = Disk()
    written(disk, "/a", b"x" * 512 * 16)
    disk.sync(disk.root)
    left = bytes(disk.cut("torn", 3).find("/a").live)
    sectors = {left[at : at + 512] for at in range(0, len(left), 512)}
    assert sectors == {b"x" * 512, bytes(512)}


def test_a_rename_is_there_or_not_and_never_half() -> None:
    disk = Disk()
    for name in ("/a", "/b"):
        written(disk, name, name.encode())
        disk.sync(disk.find(name))
    disk.sync(disk.root)
    disk.rename("/a", "/b")
    assert {bytes(disk.cut("torn", seed).find("/b").live) for seed in range(20)} == {b"/a", b"/b"}


def test_an_image_carries_what_is_on_the_disk_and_nothing_else() -> None:
    disk = Disk()
    disk.make("/f", FOLDER)
    written(disk, "/f/a", b"old")
    assert names(Disk.load(disk.image())) == set()
    for path in ("/f/a", "/f", "/"):
        disk.sync(disk.find(path))
    again = Disk.load(disk.image())
    assert bytes(again.find("/f/a").live) == b"old"
    assert bytes(again.cut("dropped", 1).find("/f/a").live) == b"old"


def test_a_failed_sync_forgets_and_a_later_one_doesnt_bring_it_back() -> None:
    disk = Disk()
    written(disk, "/a", b"old")
    disk.sync(disk.root)
    node = disk.find("/a")
    node.fail_to_sync()
    disk.sync(node)
    assert bytes(disk.cut("kept", 1).find("/a").live) == bytes(3)


def test_a_lying_disk_keeps_nothing() -> None:
    disk = Disk(honest=False)
    written(disk, "/a", b"old")
    disk.sync(disk.find("/a"))
    disk.sync(disk.root)
    assert names(disk.cut("dropped", 1)) == set()


def test_room_ends_where_it_was_set() -> None:
    disk = Disk()
    node = disk.make("/a", FILE)
    disk.quota_bytes = 10
    disk.write(node, b"x" * 10, 0)
    disk.write(node, b"y" * 10, 0)
    with pytest.raises(OSError, match="no room"):
        disk.write(node, b"x", 10)


def test_a_fault_is_found_by_operation_and_name() -> None:
    disk = Disk()
    disk.faults = [Fault(on=["write"], file="log.db*", error="EIO")]
    assert disk.fault("write", "/s/log.db-wal")
    assert not disk.fault("write", "/s/media.db")
    assert not disk.fault("sync", "/s/log.db")
    disk.gone = True
    with pytest.raises(OSError, match="gone"):
        disk.fault("read", "/x")
