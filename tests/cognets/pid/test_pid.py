"""Pid on a kernel: it acts while it is measured, and is silent while it is blind."""

from __future__ import annotations

from pathlib import Path

import pytest

import cognets.pid
from cognets.pid.controller import Controller
from runtime.abi import link
from runtime.config.cognet import load_cognet

FOLDER = Path(cognets.pid.__file__).parent


@pytest.fixture
async def kernel(small_kernel):
    config = load_cognet(FOLDER)
    kernel = small_kernel.SmallKernel(FOLDER, mode=config.mode, store=config.store)
    yield kernel
    if kernel.brain is not None and not kernel.brain.done():
        await kernel.kill()


def controls(kernel):
    return [e.data.reading.value for e in kernel.log.entries() if e.type == "cognet:output:field"]


async def test_it_says_what_to_do_while_it_is_measured(kernel):
    await kernel.start()
    kernel.say("kp=0.5 low=-10 high=10")
    kernel.sense(4.0, "setpoint")
    kernel.sense(1.0, "measured")
    await kernel.until(lambda: 1.5 in controls(kernel))


async def test_blind_it_is_silent(kernel):
    await kernel.start()
    kernel.sense(4.0, "setpoint")
    kernel.sense(1.0, "measured")
    await kernel.until(lambda: controls(kernel))
    ended = len(kernel.all(link.Ended))
    await kernel.until(link.Ended, ended + 22)
    said = len(controls(kernel))
    await kernel.until(link.Ended, ended + 26)
    assert len(controls(kernel)) == said
    assert said <= 22


async def test_without_a_setpoint_it_says_nothing(kernel):
    await kernel.start()
    kernel.sense(1.0, "measured")
    await kernel.until(link.Ended, 4)
    assert not controls(kernel)


async def test_it_resumes_with_the_integral_it_had(kernel):
    for _ in range(10):
        kernel.log.admit("cognet:stimulus:field", {"source": {"channel": "measured"}, "reading": {"value": 1.0}})
    kernel.store["checkpoint-{session}"] = Controller(ki=1.0, integral=0.25, setpoint=2.0, seq=10).to_checkpoint()
    await kernel.start()
    assert kernel.all(link.Loaded)[0].folded == 0
