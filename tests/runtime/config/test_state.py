"""The store's schema as a class in ``state.py``: read as text, never executed."""

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.errors import CognetInvalid, ConfigInvalid
from runtime.config.cognet import load_cognet
from runtime.config.state import MAX_BYTES, read_schema

CLASS = '''
from typing import Any, TypedDict

class CognetStoreSchema(TypedDict, total=False):
    """What this mind keeps."""

    checkpoint: dict[str, Any]
    mood: "float | None"
    names: list[str]
'''
TOML = 'format = 1\nabi = "1"\nmode = "continuous"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text("")
    (tmp_path / "cognet.toml").write_text(TOML)
    return tmp_path


def refused(folder: Path, source: str) -> CognetInvalid:
    (folder / "state.py").write_text(source)
    with pytest.raises(CognetInvalid) as caught:
        load_cognet(folder)
    assert caught.value.facts["file"] == str(folder / "state.py")
    return caught.value


def test_its_annotations_are_the_schema(folder):
    (folder / "state.py").write_text(CLASS)
    assert load_cognet(folder).store == {
        "checkpoint": "dict[str, Any]",
        "mood": "float | None",
        "names": "list[str]",
    }


@pytest.mark.parametrize("head", ["class CognetStoreSchema:", "class CognetStoreSchema(msgspec.Struct, frozen=True):"])
def test_its_base_doesnt_matter(folder, head):
    (folder / "state.py").write_text(f"{head}\n    n: int\n")
    assert load_cognet(folder).store == {"n": "int"}


def test_nothing_of_the_file_is_executed(folder):
    mark = folder / "mark"
    (folder / "state.py").write_text(f"open({str(mark)!r}, 'w')\nraise SystemExit\n{CLASS}")
    assert "checkpoint" in load_cognet(folder).store
    assert not mark.exists()


def test_without_file_or_class_nothing_is_declared(folder):
    assert load_cognet(folder).store == {}
    (folder / "state.py").write_text("class Store: n: int\n")
    assert load_cognet(folder).store == {}


def test_declared_in_both_places_is_an_error(folder):
    (folder / "state.py").write_text(CLASS)
    (folder / "cognet.toml").write_text(f'{TOML}[store]\nother = "int"\n')
    with pytest.raises(ConfigInvalid, match="CognetStoreSchema") as caught:
        load_cognet(folder)
    assert caught.value.facts["line"] == 4


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = (\n", 1),
        ("class CognetStoreSchema:\n    n: int = 3\n", 2),
        ("class CognetStoreSchema:\n    n = 3\n", 2),
        ("class CognetStoreSchema:\n    def f(self): pass\n", 2),
        ("class CognetStoreSchema:\n    a: int\n    b: set[int]\n", 3),
        ("class CognetStoreSchema:\n    a: __import__('os').system('x')\n", 2),
        ("class CognetStoreSchema:\n    a: int\n    a: str\n", 3),
        ("class CognetStoreSchema:\n    a: int\nclass CognetStoreSchema:\n    b: int\n", 3),
        ("class CognetStoreSchema:\n    \u00e4: int\n", 2),
        ("class CognetStoreSchema:\n    a: " + "int | " * 100 + "int\n", 2),
    ],
)
def test_what_is_wrong_is_named_with_its_line(folder, source, line):
    assert refused(folder, source).facts["line"] == line


def test_what_is_no_python_is_refused(folder):
    (folder / "state.py").write_bytes(b"\xff\0")
    with pytest.raises(CognetInvalid):
        load_cognet(folder)
    refused(folder, "(" * 100_000)
    refused(folder, "class CognetStoreSchema:\n    a: " + "int | " * 3000 + "int\n")
    refused(folder, "#" * (MAX_BYTES + 1))


def test_its_warnings_are_not_the_kernels(folder):
    (folder / "state.py").write_text(f"x = '\\d'\n{CLASS}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_cognet(folder).store


@given(source=st.text(max_size=200))
def test_any_text_gives_a_schema_or_the_error(tmp_path_factory, source):
    path = tmp_path_factory.mktemp("state") / "state.py"
    path.write_text(f"class CognetStoreSchema:\n    a: {source}", errors="replace")
    try:
        read_schema(path)
    except CognetInvalid:
        return
