"""Requests to real workers: answers in pieces, queues, cancellation, deaths, and what is told of them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import psutil
import pytest

from capsule.errors import AxonError
from runtime.abi.engines import MAX_REQUEST_BYTES, Counts
from runtime.abi.errors import (
    CallInvalid,
    EngineContextExceeded,
    EngineFailed,
    EngineQueueFull,
    EngineRequestInvalid,
    EngineRoleUnbound,
    EngineUnavailable,
    KernelStopping,
)
from runtime.kernel.engines.worker import MAX_WAITING, Patience


async def test_an_answer_comes_in_pieces_and_ends_with_its_counts(world):
    world.start()
    pieces: list[str] = []
    counts = await world.within(world.generate("count", pieces=pieces))
    assert pieces == ["one", " two", " three", " four", " five"]
    assert counts == Counts(prompt_tokens=5, generated_tokens=5, stop_reason="end")


async def test_a_worker_is_started_when_it_is_first_asked_and_works_at_nice_10(world):
    world.start()
    assert not world.supervisor.children
    await world.within(world.generate("count"))
    assert psutil.Process(world.pid()).nice() == 10


async def test_counting_needs_no_slot(world):
    world.start(world.role(slots=1))
    pieces: list[str] = []
    hanging = world.generate("hang", pieces=pieces)
    await world.until(lambda: pieces)
    assert await world.within(world.ask("count", "main", [{"role": "user", "content": "one two"}])) == 6
    hanging.cancel()


async def test_one_request_a_slot_and_the_others_in_their_order(world):
    world.start(world.role(slots=1))
    pieces: list[str] = []
    first = world.generate("hang", pieces=pieces)
    await world.until(lambda: pieces)
    order: list[str] = []
    later = [world.generate(f"say {word}", pieces=order) for word in ("a", "b", "c")]
    first.cancel()
    await world.within(asyncio.gather(*later))
    assert "".join(order) == "a!b!c!"


async def test_slots_serve_at_once(world):
    world.start(world.role(slots=2))
    one: list[str] = []
    two: list[str] = []
    hanging = [world.generate("hang", pieces=one), world.generate("hang", pieces=two)]
    await world.until(lambda: one and two)
    for task in hanging:
        task.cancel()


async def test_a_cancelled_request_frees_its_slot_at_once(world):
    world.start(world.role(slots=1))
    pieces: list[str] = []
    task = world.generate("hang", pieces=pieces)
    await world.until(lambda: pieces)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await world.within(world.generate("count"))
    (span,) = world.spans("interrupted")
    assert span.role == "main"
    assert span.waited_us is not None


async def test_a_request_that_waits_can_be_cancelled_too(world):
    world.start(world.role(slots=1))
    hanging, waiting, last = world.generate("hang"), world.generate("say a"), world.generate("say b")
    await asyncio.sleep(0)
    waiting.cancel()
    hanging.cancel()
    await world.within(last)
    assert waiting.cancelled()


async def test_the_queue_is_bounded(world):
    world.start(world.role(slots=1))
    tasks = [world.generate("hang") for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(EngineQueueFull):
        await world.generate("hang")
    for task in tasks:
        task.cancel()


async def test_the_queue_is_bounded_in_bytes_too(world):
    world.start(world.role(slots=1))
    tasks = [world.generate("hang " + "x" * 3_900_000) for _ in range(5)]
    tasks.append(world.generate("hang " + "x" * 3_900_000))
    await world.until(lambda: tasks[-1].done())
    with pytest.raises(EngineQueueFull, match="bytes"):
        tasks[-1].result()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_is_pushed_into_a_stream_that_does_not_take_it_is_bounded(world):
    world.start(world.role("ears", "stream", slots=1))
    holding, waiting = world.ask("open", "ears", "s1"), world.ask("open", "ears", "s2")
    pushes = [world.ask("push", "s2", "x" * 3_000_000) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(EngineQueueFull):
        await world.ask("push", "s2", "x" * 3_000_000)
    small = [world.ask("push", "s2", ".") for _ in range(62)]
    await asyncio.sleep(0)
    with pytest.raises(EngineQueueFull):
        await world.ask("push", "s2", ".")
    for task in (holding, waiting):
        task.cancel()
    await asyncio.gather(*pushes, *small, return_exceptions=True)


async def test_a_worker_that_is_killed_fails_what_it_was_doing_and_the_next_request_works(world):
    world.start(world.role(slots=1))
    pieces: list[str] = []
    task = world.generate("hang", pieces=pieces)
    waiting = world.generate("say still")
    await world.until(lambda: pieces)
    world.kill()
    with pytest.raises(EngineFailed, match="SIGKILL"):
        await world.within(task)
    await world.within(waiting)
    await world.within(world.generate("count"))
    (span,) = world.spans("failed")
    assert span.error == "ENGINE_FAILED"


async def test_the_role_reports_unavailable_until_its_worker_is_up_again(world):
    world.start()
    await world.within(world.generate("count"))
    world.kill()
    await world.until(lambda: world.facts)
    assert not world.facts[0][0].available
    assert "SIGKILL" in world.facts[0][0].reason
    await world.until(lambda: world.engines.facts[0].available)


async def test_a_worker_that_cannot_load_is_unavailable_with_the_reason_and_recovers(world):
    role = world.role()
    script = (world.folder / "script.toml").read_text()
    (world.folder / "script.toml").write_text("nonsense")
    world.start(role)
    with pytest.raises(AxonError, match="can't be read"):
        await world.within(world.generate("count"))
    with pytest.raises(EngineUnavailable, match="can't be read"):
        await world.within(world.generate("count"))
    assert not world.engines.facts[0].available
    (world.folder / "script.toml").write_text(script)
    await world.until(lambda: world.engines.facts[0].available)
    await world.within(world.generate("count"))


async def test_a_worker_that_does_not_end_a_cancelled_request_is_ended(world):
    world.start(world.role(slots=1), patience=Patience(cancel_s=0.0))
    pieces: list[str] = []
    task = world.generate("hang", pieces=pieces)
    pid = await world.until(lambda: pieces and world.pid())
    psutil.Process(pid).suspend()
    task.cancel()
    await world.until(lambda: not psutil.pid_exists(pid))
    await world.within(world.generate("count"))


async def test_an_interrupt_cancels_what_runs_for_wakes_and_nothing_else(world):
    world.start(world.role(slots=2))
    of_wake, of_hook = world.generate("hang", wake_id="w"), world.generate("hang", wake_id=None)
    await world.until(lambda: len(world.spans("start")) == 2)
    world.engines.interrupt()
    with pytest.raises(asyncio.CancelledError):
        await world.within(of_wake)
    assert not of_hook.done()
    of_hook.cancel()


async def test_the_shutdown_cancels_everything_and_refuses_the_rest(world):
    world.start()
    task = world.generate("hang", wake_id=None)
    await world.until(lambda: world.spans("start"))
    world.engines.stop()
    with pytest.raises(asyncio.CancelledError):
        await world.within(task)
    with pytest.raises(KernelStopping):
        await world.generate("count")


async def test_spans_have_times_and_tokens_and_no_words(world):
    world.start()
    await world.within(world.generate("say pineapple"))
    (start,), (end,) = world.spans("start"), world.spans("complete")
    assert (start.role, start.kind, start.span) == (end.role, end.kind, end.span)
    assert (end.prompt_tokens, end.cached_tokens, end.generated_tokens) == (6, 0, 2)
    assert end.ttft_ms is not None
    assert 0 < end.waited_us < end.took_us
    assert b"pineapple" not in msgspec.json.encode(world.told)
    assert [wake for type_, _, wake in world.told if type_.startswith("kernel:engine")] == ["w", "w"]


async def test_too_long_a_context_is_refused_before_any_work(world):
    world.start(world.role(context=16))
    pieces: list[str] = []
    with pytest.raises(EngineContextExceeded) as caught:
        await world.within(world.generate("count " * 30, pieces=pieces))
    assert caught.value.facts == {"tokens": 35, "context": 16}
    assert not pieces


@pytest.mark.parametrize(
    ("text", "options", "said", "reason"),
    [
        ("count", {"max_tokens": 2}, "one two", "length"),
        ("count", {"stop": ["four", " three"]}, "one two", "stop"),
        ("count", {"temperature": 1.5, "seed": 3}, "one two three four five", "end"),
    ],
)
async def test_options(world, text: str, options: dict[str, Any], said: str, reason: str) -> None:
    world.start()
    pieces: list[str] = []
    counts = await world.within(world.generate(text, options=options, pieces=pieces))
    assert ("".join(pieces), counts.stop_reason) == (said, reason)


@pytest.mark.parametrize(
    "args",
    [
        ["main", [], {}],
        ["main", "hello", {}],
        ["main", 5, {}],
        ["main", [{"role": "robot", "content": "x"}], {}],
        ["main", [{"role": "user", "content": 5}], {}],
        ["main", [{"role": "user"}], {}],
        ["main", [{"role": "user", "content": "x", "extra": 1}], {}],
        ["main", [{"role": "user", "content": "a\0b"}], {}],
        ["main", [{"role": "user", "content": "\ud800"}], {}],
        ["main", [{"role": "user", "content": "x" * (MAX_REQUEST_BYTES + 1)}], {}],
        ["main", [{"role": "user", "content": "x"}], {"temperature": float("nan")}],
        ["main", [{"role": "user", "content": "x"}], {"temperature": float("inf")}],
        ["main", [{"role": "user", "content": "x"}], {"max_tokens": 0}],
        ["main", [{"role": "user", "content": "x"}], {"max_tokens": 10**30}],
        ["main", [{"role": "user", "content": "x"}], {"stop": [""]}],
        ["main", [{"role": "user", "content": "x"}], {"colour": "red"}],
    ],
    ids=lambda args: repr(args)[:60],
)
async def test_what_no_engine_can_take_is_refused_before_a_worker_starts(world, args: list[Any]) -> None:
    world.start()
    with pytest.raises(EngineRequestInvalid):
        await world.ask("generate", *args)
    assert not world.supervisor.children
    assert not world.spans("start")


@pytest.mark.parametrize(
    ("verb", "args", "error"),
    [
        ("generate", ["other", [{"role": "user", "content": "x"}], {}], EngineRoleUnbound),
        ("generate", [5, [], {}], CallInvalid),
        ("generate", [], CallInvalid),
        ("transform", ["main", 1], CallInvalid),
        ("open", ["main", "s"], CallInvalid),
        ("push", ["nothing", 1], CallInvalid),
        ("close", [None], CallInvalid),
    ],
)
async def test_calls_that_fit_no_role(world, verb: str, args: list[Any], error: type[Exception]) -> None:
    world.start()
    with pytest.raises(error):
        await world.ask(verb, *args)


async def test_transform(world):
    world.start(world.role("eyes", "transform"))
    assert await world.within(world.ask("transform", "eyes", "a thing")) == "a thing transformed"
    task = world.ask("transform", "eyes", "slow")
    await world.until(lambda: len(world.spans("start")) == 2)
    task.cancel()
    assert await world.within(world.ask("transform", "eyes", "again")) == "again transformed"


async def test_a_stream_takes_what_is_pushed_in_its_order_from_the_first_moment(world):
    world.start(world.role("ears", "stream"))
    results: list[str] = []
    stream = world.ask("open", "ears", "s1", pieces=results)
    pushed = [world.ask("push", "s1", text) for text in ("hello ", "world. by", "e")]
    reset = world.ask("reset", "s1")
    rest = [world.ask("push", "s1", "new."), world.ask("close", "s1")]
    await world.within(asyncio.gather(*pushed, reset, *rest, stream))
    assert results == ["hello world", "new"]


async def test_a_stream_that_is_cancelled_lets_its_pushes_go(world):
    world.start(world.role("ears", "stream", slots=1))
    holding = world.ask("open", "ears", "s1")
    waiting = world.ask("open", "ears", "s2")
    push = world.ask("push", "s2", "never")
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(AxonError, match="CANCELLED"):
        await world.within(push)
    holding.cancel()


async def test_a_request_that_leaves_the_machine_waits_for_what_it_stands_on(world):
    world.start(world.role(leaves=True))
    task = world.generate("count", cursor=5)
    ((seq, durable),) = await world.until(lambda: world.log.waits)
    assert seq == 5
    assert not world.supervisor.children
    durable.set_result(None)
    await world.within(task)


async def test_a_request_that_stays_waits_for_no_disk(world):
    world.start()
    await world.within(world.generate("count"))
    assert not world.log.waits


async def test_a_worker_that_talks_nonsense_is_ended_and_recorded_and_the_next_request_works(world):
    world.start()
    pieces: list[Any] = []
    hanging = world.ask("generate", "main", [{"role": "user", "content": "hang"}], {}, pieces=pieces)
    await world.until(lambda: pieces)
    first = world.pid()
    link = world.engines._workers["main"]._link
    assert link
    link.data_received(b"\xff" * 64)
    with pytest.raises(EngineFailed):
        await world.within(hanging)
    assert [data.code for type_, data, _ in world.told if type_ == "kernel:link:refused"] == ["FRAME_INVALID"]
    assert await world.within(world.generate("count"))
    assert world.pid() != first
