"""Blocks through a real kernel, brain and capsule: what comes back, what the log holds, what every end does."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axon.client import Control
from runtime.abi.entries import decode

from .conftest import Agent, until

CONFIG = "[capsule]\ntimeout_s = {timeout_s}\n"


class Runner:
    """The agent whose cognet executes what it is told."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def tell(self, what: Any) -> None:
        self.agent.ask("say", text=json.dumps(what))

    def entries(self, kind: str = "cognet:action:") -> list[Any]:
        return [decode(row.body, row.seq) for row in self.agent.rows() if row.type.startswith(kind)]

    def said(self, channel: str) -> list[Any]:
        outputs = self.entries("cognet:output:text")
        return [json.loads(entry.data.content) for entry in outputs if entry.data.channel == channel]

    def run(self, code: str | list[str]) -> Any:
        """Have it executed, and what ``run`` returned."""
        before = len(self.said("result"))
        self.tell(code)
        return until(lambda: self.said("result")[before:], f"the result of {code!r}")[0]

    def ends(self) -> list[str]:
        """How the blocks ended: ok, or the kind of the error."""
        results = [entry.data for entry in self.entries() if entry.type.endswith("result")]
        return [result.error.kind if result.error else "ok" for result in results]

    def until_running(self, count: int = 1) -> None:
        """Wait until so many actions are on the disk and have no result."""
        until(lambda: self.open() >= count, "the block runs")

    def open(self) -> int:
        kinds = [entry.type for entry in self.entries()]
        return kinds.count("cognet:action:python") - kinds.count("cognet:action:result")


@pytest.fixture
def make_runner(make_agent: Callable[..., Agent]) -> Callable[..., Runner]:
    def make(*, timeout_s: float = 30, config: str = "", **options: Any) -> Runner:
        agent = make_agent("runner", config=CONFIG.format(timeout_s=timeout_s) + config, sensors=False)
        runner = Runner(agent)
        agent.launch(drivers=False, **options)
        until(lambda: _loaded(agent), "the cognet is loaded")
        return runner

    return make


def _loaded(agent: Agent) -> bool:
    from runtime.abi.errors import AgentNotRunning

    try:
        return bool(agent.summary()["brain"] == "up")
    except AgentNotRunning:
        return False


def test_what_run_returns_is_what_the_entry_holds(make_runner):
    runner = make_runner()
    result = runner.run("import math\ndef f(): pass\nx = 40\nprint('seen', x)\nx + 2")
    assert result["ok"]
    assert result["value"] == 42
    assert result["stdout"] == ["seen 40"]
    assert result["scope"]["values"] == {"x": 40}
    assert {absent["name"]: absent["reason"] for absent in result["scope"]["unavailable"]}["f"] == "function"
    action, outcome = runner.entries()
    assert outcome.data.action == action.data.action
    assert (outcome.data.value, outcome.data.stdout) == (42, ["seen 40"])
    assert outcome.data.scope.values == {"x": 40}
    assert action.context.wake_id
    assert action.context.wake_id == outcome.context.wake_id
    assert action.context.cursor == action.seq - 1
    assert runner.run("x")["value"] == 40, "a block sees what earlier ones bound"
    assert runner.run("import asyncio\nawait asyncio.sleep(0, 'top level')")["value"] == "top level"


def test_blocks_of_a_list_run_at_once_and_keep_their_order(make_runner):
    runner = make_runner()
    wait = "import threading\nbarrier.wait(20)\n"
    runner.run("import threading\nbarrier = threading.Barrier(3)")
    results = runner.run([f"{wait}print({number}); {number}" for number in range(3)])
    assert [result["value"] for result in results] == [0, 1, 2]
    assert [result["stdout"] for result in results] == [["0"], ["1"], ["2"]]
    kinds = [entry.type.rpartition(":")[2] for entry in runner.entries()][2:]
    assert kinds == ["python"] * 3 + ["result"] * 3


BLOCKS_THAT_FAIL = [
    "1 +",
    "raise ValueError('x')",
    "import os; os._exit(3)",
    "import ctypes; ctypes.string_at(0)",
    "bytearray(20 * 2**30)",
    "import os\nwhile True: os.fork()",
    "raise SystemExit",
    "raise KeyboardInterrupt",
    "'\\x00",
]


def test_whatever_a_block_does_is_an_exception_and_the_next_one_works(make_runner):
    runner = make_runner()
    for code in BLOCKS_THAT_FAIL:
        result = runner.run(code)
        assert not result["ok"], code
        assert result["error"]["kind"] == "exception", code
        assert runner.run("1 + 1")["value"] == 2, code


def test_a_timeout_and_the_next_block_works(make_runner):
    runner = make_runner(timeout_s=0.5)
    for code in ("while True: pass", "sum(range(10**13))", "import time; time.sleep(1000)"):
        assert runner.run(code)["error"]["kind"] == "timeout", code
        assert runner.run("1 + 1")["value"] == 2, code
    until(lambda: len(runner.ends()) == 6, "all is on the disk")
    assert runner.ends() == ["timeout", "ok"] * 3


def test_endless_output_and_a_huge_value_are_cut(make_runner):
    runner = make_runner()
    result = runner.run("print('first')\nfor _ in range(1000): print('x' * 100_000)\nprint('last'); 'y' * 100_000")
    assert result["ok"], result
    assert (result["stdout"][0], result["stdout"][-1]) == ("first", "last")
    assert result["value"][0] == result["value"][-1] == "y"
    assert sum(map(len, result["stdout"])) + len(result["value"]) <= 40_000
    assert "stdout" in result["cut"]
    assert "value" in result["cut"]


def test_the_cut_tells_how_much_is_missing(make_runner):
    runner = make_runner()
    for code, printed in (
        ("print('x' * 60_000)", 60_001),
        ("for _ in range(100_000): print()", 100_000),
        ("for _ in range(20_000): print('y' * 99)", 2_000_000),
    ):
        result = runner.agent.ask("exec", code=code)
        missing = int(result["cut"].removeprefix("stdout: ").partition(" ")[0].replace(",", ""))
        text = "\n".join([*result["stdout"], ""]).replace(f"[... {missing:,} characters cut ...]", "")
        assert abs(missing + len(text) - printed) <= 2, "line ends inside the cut may count for one"


def test_a_list_has_at_most_64_blocks(make_runner):
    runner = make_runner()
    results = runner.run([str(number) for number in range(65)])
    assert {result["error"]["kind"] for result in results} == {"exception"}
    assert runner.entries() == []
    assert [result["value"] for result in runner.run([str(number) for number in range(64)])] == list(range(64))


def test_a_value_that_refuses_is_null_with_its_reason(make_runner):
    runner = make_runner()
    result = runner.run(
        "class Odd:\n def __repr__(self): raise ValueError\n def __reduce__(self): raise ValueError\nodd = Odd()\nodd"
    )
    assert result["ok"]
    assert result["value"] is None
    assert result["value_error"]
    names = {absent["name"]: absent["reason"] for absent in result["scope"]["unavailable"]}
    assert names["odd"] == "unserializable"


def test_an_interrupt_ends_what_runs_and_leaves_no_trace_of_what_waits(make_runner):
    runner = make_runner()
    runner.tell(["while True: pass", "import time; time.sleep(1000)", "'quick'"])
    until(lambda: runner.open() == 2 and len(runner.entries()) == 4, "two of three run")
    with Control(runner.agent.folder) as person:
        number = person._send("exec", {"code": "'after'"})
        runner.agent.ask("interrupt")
        assert person._answer(number)["value"] == "after", "a person's block isn't of a wake"
    until(lambda: len(runner.entries()) == 8, "all is on the disk")
    assert runner.ends() == ["ok", "interrupt", "interrupt", "ok"]
    assert runner.said("result") == [], "the wake was cancelled"


def test_a_cancelled_call_is_interrupted_and_recorded(make_runner):
    runner = make_runner()
    runner.tell("forsake")
    assert until(lambda: runner.said("forsaken"), "it was cancelled") == [True]
    until(lambda: runner.open() == 0, "the result is recorded")
    assert runner.entries()[-1].data.error.kind == "interrupt"


def test_the_death_of_the_brain_interrupts_its_blocks(make_runner):
    runner = make_runner()
    runner.tell("while True: pass")
    runner.until_running()
    runner.agent.kill("brain")
    until(lambda: runner.open() == 0, "the result is recorded")
    assert runner.entries()[-1].data.error.kind == "interrupt"


def test_a_kernel_killed_between_action_and_result_closes_it_and_wakes_for_it(make_runner):
    runner = make_runner()
    runner.tell("import time; time.sleep(1000)")
    runner.until_running()
    runner.agent.kill("kernel")
    runner.agent.launch(drivers=False)
    found = until(lambda: runner.said("found"), "it was woken")
    assert [end["error"]["kind"] for end in found[0]] == ["interrupt"]
    action, outcome = runner.entries()
    assert outcome.data.action == action.data.action
    assert outcome.context.wake_id == action.context.wake_id
    assert runner.run("1 + 1")["value"] == 2
    recoveries = [entry for entry in runner.entries("axon:system:message") if entry.data.type == "recovery"]
    assert recoveries[-1].data.facts["actions_closed"] == 1


def test_the_shutdown_interrupts_and_refuses_more(make_runner):
    runner = make_runner()
    runner.tell("while True: pass")
    runner.until_running()
    assert runner.agent.stop() == 0
    assert runner.open() == 0
    assert runner.entries()[-1].data.error.kind == "interrupt"
    (last,) = runner.said("last")
    assert last["error"]["message"].startswith("KERNEL_STOPPING")


def test_a_person_who_leaves_interrupts_the_own_block_alone(make_runner):
    runner = make_runner()
    with Control(runner.agent.folder) as person:
        person._send("exec", {"code": "while True: pass"})
        runner.until_running()
    until(lambda: runner.open() == 0, "the result is recorded")
    assert runner.entries()[-1].data.error.kind == "interrupt"
    assert runner.run("1 + 1")["value"] == 2


def test_many_runs_at_once_are_executed_in_their_order(make_runner):
    runner = make_runner()
    results: dict[int, Any] = {}

    def ask(number: int) -> None:
        results[number] = runner.agent.ask("exec", code=f"{number}")["value"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert results == {number: number for number in range(20)}
    until(lambda: len(runner.entries()) == 40, "all is on the disk")
    kinds = [entry.type.rpartition(":")[2] for entry in runner.entries()]
    assert kinds == ["python", "result"] * 20


def test_killing_the_capsule_is_an_exception_and_the_next_block_works(make_runner):
    runner = make_runner()
    runner.tell("import ctypes, time\nctypes.CDLL(None).prctl(15, b'the block')\ntime.sleep(1000)")
    runner.until_running()
    pid = runner.agent.pid("capsule")
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "the block\n", "the block has named its process")
    os.kill(pid, signal.SIGKILL)
    result = until(lambda: runner.said("result"), "the result is said")[0]
    assert result["error"]["kind"] == "exception"
    assert runner.run("1 + 1")["value"] == 2
