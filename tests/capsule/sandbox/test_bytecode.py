"""Packages are compiled before a guest starts, since it can't write beside them."""

from __future__ import annotations

from pathlib import Path

from capsule.sandbox.bytecode import compile_ahead


def test_a_package_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x = 1\n")
    assert compile_ahead([tmp_path])
    assert [path.name.split(".")[0] for path in tmp_path.glob("__pycache__/*.pyc")] == ["one"]


def test_what_is_no_python_is_told(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("x = 1\n")
    (tmp_path / "wrong.py").write_text("x = = 1\n")
    assert not compile_ahead([tmp_path])
    assert len(list(tmp_path.glob("__pycache__/good.*"))) == 1
