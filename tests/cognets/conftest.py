"""The small kernel of the brain's tests, for cognets as they are shipped."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SMALL_KERNEL = Path(__file__).parents[1] / "runtime" / "brain" / "small_kernel.py"


@pytest.fixture(scope="session")
def small_kernel() -> Any:
    """The module, once under one name: folders of tests are no packages."""
    name = "axon_tests_small_kernel"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SMALL_KERNEL)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]
