"""One module writes durable files by hand; whoever else writes a file is in a short list, with the reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = ("runtime", "axon", "sensors", "actuators", "capsule", "cognets", "hardware_profiles", "deploy")
OWNER = "runtime/durable/files.py"
CALLS = {
    *("os.replace", "os.rename", "os.renames", "os.link", "os.symlink", "os.truncate", "os.ftruncate"),
    *("os.fsync", "os.fdatasync", "os.sync", "os.write", "os.pwrite", "os.posix_fallocate"),
    *("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move"),
    *("tempfile.mkstemp", "tempfile.NamedTemporaryFile", "tempfile.TemporaryFile"),
}
METHODS = {"write_bytes", "write_text", "rename", "touch", "symlink_to", "hardlink_to"}
WRITE_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}

ALLOWED = {
    ("runtime/durable/faults.py", "write_bytes"): "a test's disk: it plays what a cut leaves",
    ("runtime/durable/locks.py", "os.open for writing"): "an empty file to lock; its content is nobody's",
    ("runtime/durable/space.py", "os.open for writing"): "room kept for the log; its bytes mean nothing",
    ("runtime/durable/space.py", "os.posix_fallocate"): "room kept for the log; its bytes mean nothing",
    ("runtime/kernel/session.py", "os.open for writing"): "the lock that keeps a second kernel away",
    ("runtime/kernel/session.py", "os.ftruncate"): "the lock's content is a hint for people: who holds it",
    ("runtime/kernel/session.py", "os.write"): "the lock's content is a hint for people: who holds it",
    ("runtime/kernel/process.py", "os.write"): "a pipe to a child",
    ("runtime/mqtt/broker.py", "write_text"): "the broker's configuration, written anew at every start",
    ("actuators/simulated.py", "open for writing"): "a trace for tests of what a simulated actuator did",
    ("axon/commands/init.py", "write_text"): "a new agent's first files, in a folder that held nothing",
    ("axon/commands/init.py", "touch"): "a new agent's first files, in a folder that held nothing",
    ("capsule/guest/__main__.py", "open for writing"): "a word to the scheduler, in /proc",
    ("capsule/sandbox/lock.py", "open for writing"): "a word about memory running out, in /proc",
    ("capsule/sandbox/stage.py", "open for writing"): "the same word",
    ("capsule/sandbox/probe.py", "os.open for writing"): "a forbidden act, tried to see that it fails",
    ("capsule/sandbox/stage.py", "os.open for writing"): "an empty file to mount upon, in memory",
}


def writes(source: str) -> Iterator[tuple[str, int]]:
    """Every call that makes, writes, renames or syncs a file, by name and line."""
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        attribute = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in CALLS:
            yield name, call.lineno
        elif name == "os.open":
            if WRITE_FLAGS & {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}:
                yield "os.open for writing", call.lineno
        elif attribute in METHODS:
            yield attribute, call.lineno
        elif attribute == "replace" and len(call.args) == 1 and not call.keywords:
            yield "replace", call.lineno  # a path's: a string's takes two arguments
        elif (name in ("open", "os.fdopen") or attribute == "open") and set(_mode(call)) & set("wxa+"):
            yield "open for writing", call.lineno


def _mode(call: ast.Call) -> str:
    values = [*call.args[:2], *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    return next((text for text in texts if 0 < len(text) <= 3 and set(text) <= set("rwxabt+")), "")


@lru_cache
def found() -> dict[tuple[str, str], list[int]]:
    places: dict[tuple[str, str], list[int]] = {}
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            for what, line in writes(path.read_text()):
                if name != OWNER:
                    places.setdefault((name, what), []).append(line)
    return places


def test_nobody_else_writes_files_by_hand() -> None:
    others = [f"{name}:{lines[0]}: {what}" for (name, what), lines in found().items() if (name, what) not in ALLOWED]
    assert others == [], "use runtime.durable.files, or say in ALLOWED why a cut may tear this file"


def test_the_list_allows_nothing_that_isnt_there() -> None:
    assert ALLOWED.keys() - found().keys() == set()


@pytest.mark.parametrize(
    "line",
    [
        "open(name, 'w')",
        "path.open('ab')",
        "open(name, mode='x')",
        "os.fdopen(handle, 'wb')",
        "path.write_text('x')",
        "path.replace(other)",
        "os.open(path, os.O_RDWR | os.O_CREAT)",
        "os.fsync(file.fileno())",
        "tempfile.mkstemp(dir=folder)",
    ],
)
def test_it_would_be_found(line: str) -> None:
    assert list(writes(line))


@pytest.mark.parametrize("line", ["open(name)", "path.open('rb')", "text.replace('a', 'b')", "os.open(p, os.O_RDONLY)"])
def test_reading_is_free(line: str) -> None:
    assert not list(writes(line))
