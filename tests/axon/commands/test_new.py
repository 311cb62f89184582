"""``axon new cognet``: what it writes can be loaded, and works."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.abi import link
from runtime.config.cognet import load_cognet

SMALL_KERNEL = Path(__file__).parents[2] / "runtime" / "brain" / "small_kernel.py"


@pytest.fixture
def small_kernel() -> Any:
    name = "axon_tests_small_kernel"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SMALL_KERNEL)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


async def words_of(kernel: Any, do: Any) -> list[str]:
    """What the cognet says after ``do``."""
    await kernel.start()
    do()
    await kernel.until(lambda: [e for e in kernel.log.entries() if e.type == "cognet:output:text"])
    await kernel.until(link.Ended)
    await kernel.kill()
    return [e.data.content for e in kernel.log.entries() if e.type == "cognet:output:text"]


@pytest.mark.parametrize(("mode", "words"), [("invocation", "You said: hello"), ("continuous", "host.cpu is 21.5")])
def test_what_it_writes_works(axon, tmp_path, small_kernel, mode, words):
    folder = tmp_path / "mine"
    assert axon("new", "cognet", folder, "--mode", mode).status == 0
    config = load_cognet(folder)
    assert config.mode == mode

    async def live() -> list[str]:
        kernel = small_kernel.SmallKernel(folder, mode=mode, wake_on=list(config.wake_on))
        return await words_of(kernel, lambda: (kernel.say("hello"), kernel.sense(21.5)))

    assert asyncio.run(live()) == [words]


def test_in_an_agents_folder_it_says_how_it_is_used(axon, agent):
    assert 'cognet = "cognet"' in axon("new", "cognet", agent / "cognet").out
    assert "beside its axon.toml" in axon("new", "cognet", agent / "other").out


def test_nothing_is_overwritten(axon, tmp_path):
    folder = tmp_path / "mine"
    assert axon("new", "cognet", folder).status == 0
    (folder / "main.py").write_text("# mine\n")
    ended = axon("new", "cognet", folder)
    assert ended.status == 1
    assert "COGNET_EXISTS" in ended.err
    assert (folder / "main.py").read_text() == "# mine\n"
    (tmp_path / "file").write_text("")
    assert "COGNET_EXISTS" in axon("new", "cognet", tmp_path / "file").err


def test_a_name_that_is_none_is_refused(axon, tmp_path):
    assert axon("new", "cognet", tmp_path / "no name").status == 2
