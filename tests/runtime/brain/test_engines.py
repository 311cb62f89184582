"""The handles: what they check, what they ask of the kernel, and that work ends when nobody waits for it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from runtime.abi.engines import EngineFacts, Generation, Message
from runtime.abi.errors import CallInvalid, EngineFailed, EngineRequestInvalid, EngineRoleUnbound
from runtime.brain.engines import handle, has

HELLO = [{"role": "user", "content": "hello"}]
COUNTS = {"prompt_tokens": 5, "cached_tokens": 2, "generated_tokens": 3, "stop_reason": "length"}


class Brain:
    """Takes the calls of handles; a test answers them."""

    def __init__(self) -> None:
        self.engines = {
            "main": EngineFacts(role="main", type="generate", input=["text"], output=["text"], context=100, slots=2),
            "eyes": EngineFacts(role="eyes", type="transform"),
            "ears": EngineFacts(role="ears", type="stream", available=False, reason="it is started again"),
            "nose": EngineFacts(role="nose", type="transform", slots=0, available=False, reason="nothing fills it"),
        }
        self.calls: list[tuple[str, list[Any], Callable[[Any], None], asyncio.Future[Any]]] = []

    def call(self, verb: str, args: list[Any], *, hear: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.calls.append((verb, args, hear or (lambda _: None), future))
        return future


@pytest.fixture
def brain() -> Brain:
    return Brain()


async def turns(times: int = 4) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


def test_a_role_that_is_not_there_is_unbound(brain):
    for role in ("other", "nose"):
        with pytest.raises(EngineRoleUnbound, match=role):
            handle(role, brain)
    with pytest.raises(CallInvalid):
        handle(5, brain)
    with pytest.raises(CallInvalid):
        has(None, brain)


def test_has_is_whether_it_can_be_asked_now(brain):
    assert [has(role, brain) for role in ("main", "eyes", "ears", "nose", "other")] == [True, True, False, False, False]


def test_facts_are_those_of_what_fills_the_role_now(brain):
    main = handle("main", brain)
    assert (main.role, main.context, main.slots) == ("main", 100, 2)
    assert main.modalities == (("text",), ("text",))
    brain.engines = {"main": EngineFacts(role="main", type="generate", context=8, slots=1)}
    assert main.context == 8


async def test_a_stream_gives_pieces_as_they_come_and_the_whole_at_the_end(brain):
    stream = handle("main", brain).stream([Message(role="user", content="hello")], max_tokens=3)
    ((verb, args, hear, future),) = brain.calls
    assert (verb, args) == ("engine.generate", ["main", HELLO, {"max_tokens": 3}])
    hear("a")
    assert await anext(stream) == "a"
    waiting = asyncio.ensure_future(anext(stream))
    await turns()
    assert not waiting.done()
    hear("b")
    assert await waiting == "b"
    assert stream.generation is None
    hear("c")
    future.set_result(COUNTS)
    assert [piece async for piece in stream] == ["c"]
    assert stream.generation == Generation(
        text="abc", prompt_tokens=5, cached_tokens=2, generated_tokens=3, stop_reason="length"
    )


async def test_an_error_comes_after_the_pieces_that_came_before_it(brain):
    stream = handle("main", brain).stream(HELLO)
    _, _, hear, future = brain.calls[0]
    hear("a")
    future.set_exception(EngineFailed("gone"))
    assert await anext(stream) == "a"
    with pytest.raises(EngineFailed):
        await anext(stream)


async def test_request_is_the_whole(brain):
    task = asyncio.ensure_future(handle("main", brain).request(HELLO))
    await turns()
    _, _, hear, future = brain.calls[0]
    hear("x")
    future.set_result(COUNTS)
    assert (await task).text == "x"


@pytest.mark.parametrize("ask", ["request", "count"])
async def test_a_task_that_is_cancelled_cancels_the_work(brain, ask):
    task = asyncio.ensure_future(getattr(handle("main", brain), ask)(HELLO))
    await turns()
    task.cancel()
    await turns()
    assert brain.calls[0][3].cancelled()
    assert task.cancelled()


async def test_letting_go_of_a_stream_ends_the_work(brain):
    async for _ in _first(brain):
        break
    gc.collect()
    await turns()
    assert brain.calls[0][3].cancelled()


async def _first(brain):
    stream = handle("main", brain).stream(HELLO)
    brain.calls[0][2]("a")
    async for piece in stream:
        yield piece


async def test_a_stream_that_is_closed_has_ended(brain):
    stream = handle("main", brain).stream(HELLO)
    await stream.aclose()
    assert [piece async for piece in stream] == []
    assert stream.generation is None


@pytest.mark.parametrize(
    ("messages", "options"),
    [
        ([], {}),
        ("hello", {}),
        (None, {}),
        ([{"role": "nobody", "content": "x"}], {}),
        ([{"role": "user", "content": "\0"}], {}),
        ([{"role": "user", "content": "\udfff"}], {}),
        (HELLO, {"temperature": float("nan")}),
        (HELLO, {"max_tokens": -1}),
        (HELLO, {"stop": "x"}),
        (HELLO, {"wrong": 1}),
        ([object()], {}),
    ],
)
async def test_what_no_engine_can_take_never_leaves_the_brain(brain, messages, options):
    main = handle("main", brain)
    with pytest.raises(EngineRequestInvalid):
        main.stream(messages, **options)
    with pytest.raises(EngineRequestInvalid):
        await main.request(messages, **options)
    assert not brain.calls


async def test_transform(brain):
    eyes = handle("eyes", brain)
    tasks = [asyncio.ensure_future(eyes({"ref": "x"})), asyncio.ensure_future(eyes.transform(2))]
    await turns()
    for number, (verb, args, _, future) in enumerate(brain.calls):
        assert (verb, args[0]) == ("engine.transform", "eyes")
        future.set_result(number)
    assert await asyncio.gather(*tasks) == [0, 1]
    with pytest.raises(EngineRequestInvalid):
        await eyes(object())


async def test_a_stream_of_results(brain):
    results = []
    async with handle("ears", brain).open() as stream:
        verb, (role, name), hear, future = brain.calls[0]
        assert (verb, role) == ("engine.open", "ears")
        pushing = asyncio.ensure_future(stream.push("sound"))
        await turns()
        stream.reset()
        stream.close()
        stream.close()
        assert [(verb, args) for verb, args, _, _ in brain.calls[1:]] == [
            ("engine.push", [name, "sound"]),
            ("engine.reset", [name]),
            ("engine.close", [name]),
        ]
        brain.calls[1][3].set_result(None)
        await pushing
        hear("heard")
        future.set_result(None)
        results = [result async for result in stream]
        with pytest.raises(CallInvalid):
            await stream.push("more")
    assert results == ["heard"]


async def test_leaving_a_stream_ends_it(brain):
    with pytest.raises(ZeroDivisionError):
        async with handle("ears", brain).open():
            raise ZeroDivisionError
    assert brain.calls[0][3].cancelled()


async def test_a_stream_that_was_not_opened_is_of_no_use(brain):
    stream = handle("ears", brain).open()
    with pytest.raises(CallInvalid):
        await stream.push(1)
    with pytest.raises(CallInvalid):
        await anext(stream)
    async with stream:
        pass
    with pytest.raises(CallInvalid):
        async with stream:
            pass
