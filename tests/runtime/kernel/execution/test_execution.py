from __future__ import annotations

import asyncio

import pytest

from capsule.result import BlockError, RunResult
from runtime.abi.errors import CallInvalid
from runtime.abi.link import Call
from runtime.abi.payloads import Interrupt
from runtime.log.reader import LogReader


def kinds(results):
    return [result.error.kind if result.error else "ok" for result in results]


def story(bench):
    """The actions and results of the log: codes, and the kinds of their ends."""
    return [
        entry.data.code if entry.type == "cognet:action:python" else entry.data.error.kind if entry.data.error else "ok"
        for entry in bench.entries()
    ]


async def test_action_then_result_with_wake_and_cursor(bench, soon):
    bench.log.admit("axon:system:message", {"type": "t", "text": "before"})
    run = bench.run("1 + 1", wake_id="w7", cursor=1)
    await soon(bench.capsule.began.wait())
    bench.capsule.settle_all()
    (result,) = await soon(run)
    assert result == RunResult(ok=True, value="1 + 1")
    action, outcome = bench.entries()
    assert action.data.code == "1 + 1"
    assert outcome.data.action == action.data.action
    assert outcome.data.value == "1 + 1"
    for entry in (action, outcome):
        assert (entry.context.wake_id, entry.context.cursor) == ("w7", 1)


async def test_the_action_is_durable_when_the_block_begins(bench, soon, folder):
    run = bench.run("1", "2")
    await soon(bench.capsule.began.wait())
    assert [row.type for row in LogReader(folder).rows()] == ["cognet:action:python"] * 2
    bench.capsule.settle_all()
    assert kinds(await soon(run)) == ["ok", "ok"]


async def test_no_block_begins_before_its_action_is_durable(make_bench, soon):
    bench = make_bench(sync_delay_ms=50)
    run = bench.run("1")
    await bench.until_written("1")
    assert not bench.capsule.began.is_set()
    assert bench.log.durable_seq == 0
    await soon(bench.capsule.began.wait())
    assert bench.log.durable_seq == 1
    bench.capsule.settle_all()
    await soon(run)


async def test_actions_arent_held_by_the_commit_interval(make_bench, soon):
    bench = make_bench(commit_interval_ms=10_000)
    run = bench.run("1")
    await asyncio.wait_for(bench.capsule.began.wait(), 5)
    bench.capsule.settle_all()
    await soon(run)


async def test_a_result_is_committed_the_moment_its_block_settles_and_results_keep_their_order(bench, soon):
    run = bench.run("1", "2")
    await soon(bench.capsule.began.wait())
    first, second = bench.capsule.asked
    bench.capsule.settle(second, RunResult(ok=True, value=2))
    assert bench.entries()[-1].data.value == 2
    assert not run.done()
    bench.capsule.settle(first, RunResult(ok=True, value=1))
    assert [result.value for result in await soon(run)] == [1, 2]


async def test_runs_queue_in_their_order(bench, soon):
    runs = [bench.run(str(number)) for number in range(3)]
    for number in range(3):
        await soon(bench.capsule.began.wait())
        assert bench.capsule.runs[-1] == [str(number)]
        assert len(bench.entries("cognet:action:python")) == number + 1, "the next one's action isn't written yet"
        bench.capsule.settle_all()
        await soon(runs[number])


async def test_what_is_no_block_fails_alone_and_leaves_no_entry(bench, soon):
    run = bench.run("1", 2, "x" * 200_001, "é" * 150_000, "5")
    await soon(bench.capsule.began.wait())
    bench.capsule.settle_all()
    results = await soon(run)
    assert kinds(results) == ["ok", "exception", "exception", "exception", "ok"]
    assert [result.error.message.partition(":")[0] for result in results[1:4]] == [
        "CALL_INVALID",
        "CALL_INVALID",
        "ENTRY_TOO_LARGE",
    ]
    assert story(bench) == ["1", "5", "ok", "ok"]


async def test_when_nothing_is_a_block_nothing_is_executed(bench, soon):
    assert kinds(await soon(bench.run(None))) == ["exception"]
    assert await soon(bench.run()) == []
    assert bench.capsule.runs == []


async def test_an_interrupt_ends_what_runs_and_what_waits(bench, soon):
    running, waiting = bench.run("1", "2"), bench.run("3")
    await soon(bench.capsule.began.wait())
    bench.capsule.settle(next(iter(bench.capsule.asked)), RunResult(ok=True))
    bench.log.admit("axon:interrupt", Interrupt(by="test"))
    assert kinds(await soon(running)) == ["ok", "interrupt"]
    assert kinds(await soon(waiting)) == ["interrupt"]
    assert story(bench) == ["1", "2", "ok", "interrupt"], "what never began left no entry"


async def test_an_interrupt_leaves_hooks_and_people_alone(bench, soon):
    run = bench.run("1", wake_id=None)
    await soon(bench.capsule.began.wait())
    bench.log.admit("axon:interrupt", Interrupt(by="test"))
    assert not run.done()
    bench.capsule.settle_all()
    assert kinds(await soon(run)) == ["ok"]


async def test_an_interrupt_before_the_action_is_durable_closes_it_at_once(make_bench, soon):
    bench = make_bench(sync_delay_ms=200)
    run = bench.run("1")
    await bench.until_written("1")
    bench.log.admit("axon:interrupt", Interrupt(by="test"))
    assert kinds(await soon(run)) == ["interrupt"]
    assert bench.log.durable_seq == 0
    assert story(bench) == ["1", "interrupt"]
    after = bench.run("2")
    await soon(bench.capsule.began.wait())
    assert bench.capsule.runs == [["2"]], "the first was never executed"
    bench.capsule.settle_all()
    await soon(after)


async def test_when_the_caller_is_cancelled_the_result_is_committed_all_the_same(bench, soon):
    run, next_run = bench.run("1"), bench.run("2")
    await soon(bench.capsule.began.wait())
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert story(bench) == ["1", "interrupt"]
    await bench.until_written("2")
    await soon(bench.capsule.began.wait())
    bench.capsule.settle_all()
    assert kinds(await soon(next_run)) == ["ok"]


async def test_a_caller_cancelled_while_it_waits_leaves_no_entry(bench, soon):
    first, second = bench.run("1"), bench.run("2")
    await soon(bench.capsule.began.wait())
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    bench.capsule.settle_all()
    await soon(first)
    assert story(bench) == ["1", "ok"]


async def test_at_the_shutdown_everything_ends_and_more_is_refused(bench, soon):
    hook, waiting = bench.run("1", wake_id=None), bench.run("2")
    await soon(bench.capsule.began.wait())
    bench.execution.stop()
    assert kinds(await soon(hook)) == ["interrupt"]
    assert kinds(await soon(waiting)) == ["interrupt"]
    (late,) = await soon(bench.run("3"))
    assert late.error.message.startswith("KERNEL_STOPPING")
    assert story(bench) == ["1", "interrupt"]


async def test_a_capsule_that_gives_no_result_is_an_exception(bench, soon):
    bench.capsule.loses = True
    assert kinds(await soon(bench.run("1"))) == ["exception"]
    assert story(bench) == ["1", "exception"]


async def test_whatever_a_capsule_says_ends_as_an_entry(bench, soon):
    run = bench.run("1")
    await soon(bench.capsule.began.wait())
    (id_,) = bench.capsule.asked
    hostile = RunResult(ok=True, value=[float("nan")], stdout=["\ud800", "\0" * 1_000_000], cut="x" * 10_000)
    bench.capsule.settle(id_, hostile)
    (result,) = await soon(run)
    assert result.ok
    assert result.value_error
    assert bench.entries()[-1].data.stdout == result.stdout


async def test_a_second_result_of_a_block_changes_nothing(bench, soon):
    run = bench.run("1", "2")
    await soon(bench.capsule.began.wait())
    first, second = bench.capsule.asked
    settled = bench.capsule._settled
    bench.capsule.settle(first, RunResult(ok=True, value=1))
    settled(first, RunResult(ok=True, value="again"))
    settled("no such block", RunResult(ok=True))
    bench.capsule.settle(second, RunResult(ok=True, value=2))
    assert [result.value for result in await soon(run)] == [1, 2]
    assert len(bench.entries()) == 4


async def test_spans_without_code_or_values(bench, soon):
    run = bench.run("secret()", "other", "third")
    await soon(bench.capsule.began.wait())
    ids = list(bench.capsule.asked)
    ends = [RunResult(ok=True, value="secret")]
    ends += [RunResult(ok=False, error=BlockError(kind=kind, message="secret")) for kind in ("timeout", "interrupt")]
    for id_, end in zip(ids, ends, strict=True):
        bench.capsule.settle(id_, end)
    await soon(run)
    assert [type_ for type_, _, _ in bench.told] == [
        *["kernel:run:start"] * 3,
        "kernel:run:complete",
        "kernel:run:failed",
        "kernel:run:interrupted",
    ]
    assert [data.block for _, data, _ in bench.told] == ids * 2
    assert all(wake_id == "w" and "secret" not in repr(data) for _, data, wake_id in bench.told)
    assert [data.error for _, data, _ in bench.told[3:]] == [None, "timeout", "interrupt"]
    assert all(data.took_us >= 0 for _, data, _ in bench.told[3:])


@pytest.mark.parametrize(
    ("args", "wake_id"),
    [([], None), ([[], []], None), (["1"], None), ([{"1": 2}], None), ([["1"] * 65], None), ([["1"]], "w" * 65)],
)
async def test_a_call_that_no_brain_of_ours_makes_is_refused_before_anything(bench, args, wake_id):
    with pytest.raises(CallInvalid):
        await bench.execution.verbs["run"](Call(1, "run", args, wake_id), lambda _: None)
    assert bench.entries() == []


async def test_a_cursor_that_the_log_hasnt_reached_is_none(bench, soon):
    run = asyncio.ensure_future(bench.execution.verbs["run"](Call(1, "run", [["1"]], "w", 10**12), lambda _: None))
    await soon(bench.capsule.began.wait())
    bench.capsule.settle_all()
    await soon(run)
    assert [entry.context.cursor for entry in bench.entries()] == [None, None]
