import subprocess
import sys
from importlib.metadata import version

import pytest

from axon.commands.init import init

AXON = [sys.executable, "-m", "axon.cli"]


def test_a_reader_that_leaves_early_is_no_error(axon, tmp_path):
    command = (
        "import typer; from axon.cli import app, main\n"
        "app.command('spam')(lambda: [typer.echo('x' * 99) for _ in range(99999)])\n"
        "main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", command, "spam"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(30)
    assert b"Traceback" not in errors


def test_words_that_are_no_utf8_are_wrong_usage(axon, agent, kernel):
    async def say(text: str, channel: str, source: str) -> dict[str, int]:
        return {"seq": 1}

    kernel(say=say)
    ended = axon("say", agent, "caf\udce9")
    assert (ended.status, ended.err) == (2, "the arguments must be UTF-8\n")


def test_an_error_is_its_code_what_happened_and_below_it_what_to_do(axon, tmp_path):
    lines = axon("run", tmp_path).err.splitlines()
    assert lines[0].startswith("AGENT_NOT_FOUND: there is no agent in ")
    assert lines[1].startswith("  An agent is a folder")


def test_what_the_system_refuses_is_one_line(axon, tmp_path):
    (tmp_path / "file").touch()
    ended = axon("init", tmp_path / "file/robot")
    assert ended.status == 1
    assert ended.err.startswith("SYSTEM_REFUSED: ")
    assert len(ended.err.splitlines()) == 2  # what happened, and what to do


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["log", "--help"], ["run", "--help"]])
def test_help_is_there(axon, words):
    ended = axon(*words)
    assert ended.status == 0
    assert "Usage: " in ended.out


def test_the_program_runs_as_a_module_too():
    shown = subprocess.run([*AXON, "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert (init.__doc__ or "").splitlines()[0] in shown.stdout


def test_it_says_which_release_it_is(axon):
    ended = axon("--version")
    assert (ended.status, ended.out) == (0, f"axon {version('axon-edge')}\n")
