"""Small durable files: old or new, and nothing else beside them."""

import os
from pathlib import Path

import pytest

from runtime.durable.files import make_folder, remove_durable, remove_leftovers, rename_durable, write_durable


def test_content_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "stop.json"
    write_durable(file, b"one")
    write_durable(file, b"two")
    assert file.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [file]


def test_permissions_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "axon.toml"
    file.write_bytes(b"one")
    file.chmod(0o640)
    write_durable(file, b"two")
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    file = tmp_path / "stop.json"
    write_durable(file, b"one")

    def fail(*_: object) -> None:
        raise OSError("on purpose")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="on purpose"):
        write_durable(file, b"two")
    assert file.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [file]


def test_every_step_is_synced_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (steps.append(_kind(file)), sync(file))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("rename"), replace(a, b))[1])
    write_durable(tmp_path / "a", b"x")
    assert steps == ["file", "rename", "folder"]


def _kind(file: int) -> str:
    return "folder" if os.path.isdir(f"/proc/self/fd/{file}") else "file"


def test_removing_is_repeatable(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    write_durable(file, b"one")
    remove_durable(file)
    remove_durable(file)
    assert not file.exists()


def test_renaming_and_folders(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b" / "c")
    make_folder(tmp_path / "a" / "b" / "c")
    write_durable(tmp_path / "a" / "b" / "c" / "one", b"1")
    rename_durable(tmp_path / "a" / "b" / "c" / "one", tmp_path / "a" / "b" / "c" / "two")
    assert (tmp_path / "a" / "b" / "c" / "two").read_bytes() == b"1"


def test_what_a_cut_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".stop.json.abc.tmp").write_bytes(b"half")
    (tmp_path / "stop.json").write_bytes(b"whole")
    (tmp_path / ".hidden").write_bytes(b"somebody's")
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "stop.json"]
