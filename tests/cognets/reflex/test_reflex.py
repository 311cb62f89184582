"""Reflex on a kernel: it steers each wake, thinks beside it, and resumes from its checkpoint."""

from pathlib import Path

import pytest

import cognets.reflex
from cognets.reflex.state import Model
from runtime.abi import link
from runtime.config.cognet import load_cognet

FOLDER = Path(cognets.reflex.__file__).parent


@pytest.fixture
async def kernel(small_kernel):
    config = load_cognet(FOLDER)
    kernel = small_kernel.SmallKernel(FOLDER, mode=config.mode, store=config.store)
    yield kernel
    if kernel.brain is not None and not kernel.brain.done():
        await kernel.kill()


def outputs(kernel, channel):
    return [e for e in kernel.log.entries() if e.type.startswith("cognet:output") and e.data.channel == channel]


async def test_each_wake_steers(kernel):
    await kernel.start()
    await kernel.until(link.Ended, 5)
    assert {e.outcome for e in kernel.all(link.Ended)} == {"complete"}
    assert len(outputs(kernel, "steer")) >= 5
    await kernel.until(lambda: len(kernel.spans("cognet:phase:complete")) >= 15)
    assert [e.data["name"] for e in kernel.spans("cognet:phase:start")][:3] == ["sense", "decide", "act"]


async def test_a_thought_goes_on_beside_later_wakes_which_then_use_it(kernel):
    await kernel.start()
    stimulus = kernel.say("look left")
    await kernel.until(lambda: outputs(kernel, "thought"))
    (bias,) = outputs(kernel, "bias")
    thinker = bias.context.wake_id
    steering = outputs(kernel, "steer")
    meanwhile = [e for e in steering if stimulus < e.seq < bias.seq and e.context.wake_id != thinker]
    assert len(meanwhile) > 10
    assert max(e.overlap for e in kernel.all(link.Admitted)) >= 2
    await kernel.until(lambda: len(outputs(kernel, "steer")) > len(steering) + 2)
    assert outputs(kernel, "steer")[-1].data.reading.value != meanwhile[0].data.reading.value


async def test_one_thought_a_channel_at_a_time(kernel):
    await kernel.start()
    for _ in range(5):
        kernel.say("again and again")
    await kernel.until(lambda: outputs(kernel, "thought"))
    assert len(outputs(kernel, "thought")) == 1


async def test_an_interrupt_ends_the_thought_and_another_may_begin(kernel):
    await kernel.start()
    kernel.say("one")
    await kernel.until(lambda: [e for e in kernel.spans("cognet:phase:start") if e.data["name"] == "deliberate"])
    kernel.interrupt()
    await kernel.until(lambda: kernel.spans("cognet:phase:interrupted"))
    kernel.say("two")
    await kernel.until(lambda: outputs(kernel, "thought"))
    assert "two" in outputs(kernel, "thought")[0].data.content


async def test_it_resumes_from_its_checkpoint_without_folding_again(kernel):
    for number in range(2000):
        kernel.log.admit("cognet:stimulus:field", {"source": {"channel": "c"}, "reading": {"value": number % 7}})
    model = Model()
    model.fold(kernel.log.entries()[:1990])
    kernel.store["checkpoint-{session}"] = model.to_checkpoint()
    await kernel.start()
    assert kernel.all(link.Loaded)[0].folded == 10


async def test_it_keeps_a_checkpoint_that_is_the_fold_of_its_log(kernel):
    kernel.wakes = 147
    await kernel.start()
    kernel.sense(1.0)
    await kernel.until(lambda: "checkpoint-{session}" in kernel.store)
    saved = Model.from_checkpoint(kernel.store["checkpoint-{session}"])
    folded = Model()
    folded.fold(kernel.log.entries()[: saved.seq])
    assert saved == folded


async def test_what_was_new_before_the_restart_is_not_thought_about_again(kernel):
    kernel.log.admit("cognet:stimulus:text", {"source": {"channel": "user"}, "content": "long ago"})
    await kernel.start()
    await kernel.until(link.Ended, 3)
    assert not [e for e in kernel.spans("cognet:phase:start") if e.data["name"] == "deliberate"]
