"""``axon exec``: what it prints, and what the real kernel executes."""

import io
import json
import signal
import subprocess
import sys
import time

import pytest

from capsule.result import Absent, BlockError, CapsuleScope, RunResult
from runtime.abi.entries import decode
from runtime.log.reader import LogReader


@pytest.fixture
def answers(kernel):
    """A kernel that answers each block with the next of these results, and keeps the blocks."""

    def start(*results: RunResult) -> list[str]:
        blocks: list[str] = []

        async def exec_(code: str) -> RunResult:
            blocks.append(code)
            return results[len(blocks) - 1]

        kernel(exec=exec_)
        return blocks

    return start


def test_json_is_written_to_the_letter(axon, agent, answers):
    answers(RunResult(ok=True, value=2, scope=CapsuleScope(values={"x": 1})))
    ended = axon("exec", agent, "--code", "x = 1; x + 1", "--json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == (
        '{"ok": true, "value": 2, "stdout": [], "scope": {"values": {"x": 1}, "unavailable": []}, "error": null}\n'
    )


def test_json_of_a_failure_has_value_error_and_cut_only_when_they_are_there(axon, agent, answers):
    answers(
        RunResult(ok=False, error=BlockError(kind="timeout", message="10 s"), cut="stdout: 5 characters left out"),
        RunResult(ok=True, value_error="no", scope=CapsuleScope(unavailable=[Absent("f", "function")])),
    )
    ended = axon("exec", agent, "--code", "a", "--code", "b", "--json")
    assert ended.status == 1
    first, second = map(json.loads, ended.out.splitlines())
    assert list(first) == ["ok", "value", "stdout", "scope", "error", "cut"]
    assert first["error"] == {"kind": "timeout", "message": "10 s"}
    assert list(second) == ["ok", "value", "stdout", "scope", "error", "value_error"]
    assert second["scope"]["unavailable"] == [{"name": "f", "reason": "function"}]


def test_a_person_reads_output_value_and_names(axon, agent, answers):
    answers(
        RunResult(
            ok=True,
            value=[1, "a"],
            stdout=["hello", "two\nlines"],
            scope=CapsuleScope(values={"x": 1}, unavailable=[Absent("f", "function")]),
            cut="something",
        )
    )
    ended = axon("exec", agent, "--code", "a")
    assert ended.out == "hello\ntwo\nlines\n[1, 'a']\n[bound x = 1, f (function)]\n[cut: something]\n"


def test_a_failure_is_said_on_standard_error(axon, agent, answers):
    answers(RunResult(ok=False, stdout=["before"], error=BlockError(kind="exception", message="NameError: x")))
    assert axon("exec", agent, "--code", "x") == (1, "before\n", "exception: NameError: x\n")


def test_a_blocks_words_dont_drive_the_terminal(axon, agent, answers):
    answers(RunResult(ok=True, value="\x1b[2J", stdout=["\x1b]0;title\x07\ttab"], value_error="\x1b"))
    ended = axon("exec", agent, "--code", "x")
    assert "\x1b" not in ended.out
    assert "\ttab" in ended.out


def test_blocks_of_code_come_first_then_files_then_standard_input(axon, agent, answers, tmp_path, monkeypatch):
    blocks = answers(*[RunResult(ok=True)] * 4)
    (tmp_path / "block.py").write_text("from_file = 'é'\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from_stdin")))
    ended = axon("exec", agent, "--file", tmp_path / "block.py", "--file", "-", "--code", "1", "--code", "2")
    assert ended.status == 0
    assert blocks == ["1", "2", "from_file = 'é'\n", "from_stdin"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cant_be_read_executes_nothing(axon, agent, answers, tmp_path, content):
    blocks = answers()
    path = tmp_path / "block.py"
    if content is not None:
        path.write_bytes(content)
    assert axon("exec", agent, "--code", "1", "--file", path).status in (1, 2)
    assert blocks == []


def test_without_a_block_the_usage_is_wrong(axon, agent):
    assert axon("exec", agent).status == 2


def test_without_an_agent_nothing_is_started(axon, tmp_path):
    ended = axon("exec", tmp_path, "--code", "1")
    assert ended.status == 1
    assert "AGENT_NOT_FOUND" in ended.err


# -- the real kernel and capsule --------------------------------------------------------------------


@pytest.fixture
def real(axon, agent):
    """The command on an agent that isn't running: ``real("--code", "1")``, with lines of JSON decoded."""

    def run(*words: object, config: str = "timeout_s = 20") -> list[dict]:
        (agent / "axon.toml").write_text(f'format = 1\n[agent]\nname = "robot"\n[capsule]\n{config}\n')
        ended = axon("exec", agent, "--volatile-data", "--json", *words)
        found = [json.loads(line) for line in ended.out.splitlines()]
        assert ended.status == (0 if all(one["ok"] for one in found) else 1), ended.err
        return found

    return run


def entries(agent):
    session = agent / "data/sessions" / (agent / "data/session").read_text()
    return [decode(row.body, row.seq) for row in LogReader(session).rows(types=["cognet:action:*"])]


def test_an_agent_that_isnt_running_executes_to_the_letter(axon, agent):
    ended = axon("exec", agent, "--volatile-data", "--code", "x = 1; x + 1", "--json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == (
        '{"ok": true, "value": 2, "stdout": [], "scope": {"values": {"x": 1}, "unavailable": []}, "error": null}\n'
    )
    action, result = entries(agent)
    assert (action.data.code, result.data.value) == ("x = 1; x + 1", 2)
    assert action.context.wake_id is None


def test_a_block_that_never_ends_is_a_timeout_and_the_next_one_works(real):
    endless, next_one = real("--code", "while True: pass", "--code", "1 + 1", config="timeout_s = 0.5")
    assert (endless["ok"], endless["error"]["kind"]) == (False, "timeout")
    assert next_one["value"] == 2


def test_blocks_see_what_earlier_ones_bound(real):
    assert real("--code", "x = 20", "--code", "x + 1")[1]["value"] == 21


@pytest.mark.parametrize(("memory", "ok"), [("128 MB", False), ("1 GB", True)])
def test_the_memory_that_is_configured_is_what_there_is(real, memory, ok):
    (result,) = real("--code", "len(bytearray(200_000_000))", config=f'memory = "{memory}"')
    assert result["ok"] is ok
    assert ok or "MemoryError" in result["error"]["message"]


def test_ctrl_c_interrupts_the_block_and_ends_the_kernel_in_order(agent):
    with (agent / "axon.toml").open("a") as config:
        config.write("\n[capsule]\ntimeout_s = 300\n")
    exec_ = [sys.executable, "-m", "axon", "exec", str(agent), "--volatile-data", "--code", "while True: pass"]
    command = ["env", "--default-signal=INT", *exec_]  # whoever runs the tests in the background has it ignored
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 40
    while not ((agent / "data/run.json").exists() and entries(agent)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(40) != 0
    action, result = entries(agent)
    assert result.data.action == action.data.action
    assert result.data.error.kind == "interrupt"
    assert not (agent / "data/run.json").exists()
