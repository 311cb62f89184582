"""The gates: which SQLite and which file system may hold a log."""

import os
from pathlib import Path

import pytest

from runtime.abi.errors import SqliteUnsupported, StorageUnsupported
from runtime.durable.gates import check_file_system, check_sqlite, file_system


@pytest.mark.parametrize("version", ["3.40.1", "3.46.1", "3.51.2"])
def test_versions_with_the_bug_are_refused(version: str) -> None:
    with pytest.raises(SqliteUnsupported) as raised:
        check_sqlite(version)
    assert raised.value.facts["version"] == version


def test_the_one_in_use_is_safe() -> None:
    check_sqlite()
    check_sqlite("3.51.3")
    check_sqlite("4.0.0")


@pytest.mark.parametrize(("kind", "fit"), [("ext4", True), ("f2fs", True), ("tmpfs", False), ("nfs4", False)])
def test_file_systems(tmp_path: Path, kind: str, fit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.durable.gates.file_system", lambda _folder: kind)
    assert check_file_system(tmp_path, volatile_data=True) == kind
    if fit:
        assert check_file_system(tmp_path) == kind
        return
    with pytest.raises(StorageUnsupported, match=kind):
        check_file_system(tmp_path)


def test_the_type_comes_from_the_mount_table(tmp_path: Path) -> None:
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 0:99 / / rw - btrfs x rw\n2 1 {number} / /mnt/a\\040b rw shared:1 - overlay y rw\n")
    assert file_system(tmp_path, table) == "overlay"
    table.write_text("1 0 0:98 / / rw - btrfs x rw\n")
    assert file_system(tmp_path, table) == "btrfs"
    table.write_text("")
    assert file_system(tmp_path, table) == "unknown"
