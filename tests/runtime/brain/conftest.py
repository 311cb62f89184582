"""A cognet folder to write into, and a small kernel that runs it."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.brain.verbs import binding


def _load() -> Any:
    """The test kernel, once under one name: folders of tests are no packages."""
    name = "axon_tests_small_kernel"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("small_kernel.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


_small_kernel = _load()

HEAD = """
import asyncio
import contextlib
from runtime import errors, every, kernel, loop, on, phase, system
"""


@pytest.fixture(scope="session")
def small_kernel() -> Any:
    """The module of the test kernel."""
    return _small_kernel


@pytest.fixture(autouse=True)
def no_brain_before() -> None:
    """A process has had no brain when its cognet is imported; this one had those of earlier tests."""
    binding.clear()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a cognet's files; the usual imports stand at the head of ``main.py``."""

    def write_files(main: str, **files: str) -> Path:
        folder = tmp_path / "cognet"
        (folder / "plugins").mkdir(parents=True, exist_ok=True)
        (folder / "main.py").write_text(HEAD + textwrap.dedent(main))
        for name, text in files.items():
            (folder / f"{name.replace('__', '/')}.py").write_text(HEAD + textwrap.dedent(text))
        return folder

    return write_files


@pytest.fixture
async def kernel_of(write: Callable[..., Path]) -> Any:
    """Make a kernel for a cognet; whatever brain still runs at the end of the test is ended."""
    made = []

    def make(main: str, *, files: dict[str, str] | None = None, **given: Any) -> Any:
        kernel = _small_kernel.SmallKernel(write(main, **files or {}), **given)
        made.append(kernel)
        return kernel

    yield make
    for kernel in made:
        if kernel.brain is not None and not kernel.brain.done():
            await kernel.kill()


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What the cognet of a test writes down: ``import builtins; builtins.seen.append(...)``."""
    import builtins

    builtins.seen = []  # type: ignore[attr-defined]  # the one place both a test and its cognet can reach
    yield builtins.seen  # type: ignore[attr-defined]
    del builtins.seen  # type: ignore[attr-defined]
