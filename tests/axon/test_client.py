import asyncio
import socket
import threading
from contextlib import contextmanager

import msgspec
import pytest

from axon.client import Control, ask, running
from capsule.errors import AxonError, FrameInvalid
from capsule.frames import Hello, frame
from runtime.abi.errors import AgentNotRunning, CallInvalid, StorageFailed
from runtime.abi.observe import RunFile


async def echo(text: str) -> dict[str, str]:
    return {"text": text}


async def echo_nothing() -> None:
    return None


async def fail() -> None:
    raise StorageFailed("the disk is gone", path="/x")


def listening(agent, tmp_path) -> socket.socket:
    """A socket where the kernel's should be, that the test answers by hand."""
    path = tmp_path / "c"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    (agent / "data").mkdir()
    run = RunFile(pid=1, agent="a", session="s", boot_id="b", control=str(path), bus="", broker="")
    (agent / "data/run.json").write_bytes(msgspec.json.encode(run))
    return server


def test_a_question_is_answered(agent, kernel):
    kernel(echo=echo)
    assert ask(agent, "echo", text="hello") == {"text": "hello"}


def test_several_questions_go_over_one_connection(agent, kernel):
    kernel(echo=echo)
    with Control(agent) as control:
        assert [control.ask("echo", text=str(number)) for number in range(3)] == [{"text": str(n)} for n in range(3)]


def test_the_kernels_refusal_is_raised_as_the_same_class(agent, kernel):
    kernel(fail=fail)
    with pytest.raises(StorageFailed, match="the disk is gone") as caught:
        ask(agent, "fail")
    assert caught.value.facts["path"] == "/x"


def test_a_long_question_does_not_hold_up_the_others(agent, kernel):
    ended = asyncio.Event()

    async def long() -> str:
        await ended.wait()
        return "at last"

    async def end() -> None:
        ended.set()

    kernel(long=long, end=end, echo=echo, pids=echo_nothing)
    with Control(agent) as control:
        number = control._send("long", {})
        assert control.ask("echo", text="a") == {"text": "a"}
        control.ask("end")
        assert control._answer(number) == "at last"


def test_the_late_answer_to_a_question_given_up_is_not_taken_for_another(agent, kernel):
    asked, ended = threading.Event(), asyncio.Event()

    async def late() -> str:
        asked.set()
        await ended.wait()
        return "late"

    async def end() -> str:
        ended.set()
        return "ended"

    kernel(late=late, end=end)
    with Control(agent, timeout_s=0.2) as control:
        with pytest.raises(AgentNotRunning, match="in time"):
            control.ask("late")
        assert asked.wait(20)
        assert [control.ask("end") for _ in range(3)] == ["ended"] * 3


def test_what_takes_long_is_waited_for_while_the_kernel_lives(agent, kernel):
    looks, ended = [], asyncio.Event()

    async def pids() -> None:
        looks.append(1)
        if len(looks) == 3:
            ended.set()

    async def long() -> str:
        await ended.wait()
        return "at last"

    kernel(long=long, pids=pids)
    with Control(agent, timeout_s=0.05) as control:
        assert control.wait_for("long") == "at last"
    assert len(looks) == 3


def test_a_kernel_that_answers_nothing_else_is_given_up(agent, kernel):
    async def never() -> None:
        await asyncio.Event().wait()

    kernel(long=never, pids=never)
    with Control(agent, timeout_s=0.05) as control, pytest.raises(AgentNotRunning, match="in time"):
        control.wait_for("long")


def test_what_nobody_waits_for_any_more_is_cancelled_if_it_is_of_that_kind(agent, kernel):
    cancelled, began, ended = threading.Event(), threading.Event(), threading.Event()

    async def exec_() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def stop() -> None:
        await asyncio.get_running_loop().run_in_executor(None, cancelled.wait, 20)
        ended.set()

    kernel(exec=exec_, stop=stop)
    with Control(agent) as control:
        control._send("exec", {})
        control._send("stop", {})
        assert began.wait(20)
    assert cancelled.wait(20)
    assert ended.wait(20), "a stop goes on without its client"


def test_a_defect_is_told_to_whoever_asks(agent, kernel, caplog):
    async def broken() -> None:
        raise KeyError("x")

    kernel(broken=broken)
    with Control(agent) as control:
        for _ in range(2):
            with pytest.raises(AxonError, match="broken failed: KeyError"):
                control.ask("broken")
    assert "the request 'broken' failed" in caplog.text


@pytest.mark.parametrize(("verb", "args"), [("nothing", {}), ("echo", {}), ("echo", {"text": "a", "more": 1})])
def test_a_question_nobody_understands_is_refused(agent, kernel, verb, args):
    kernel(echo=echo)
    with pytest.raises(CallInvalid):
        ask(agent, verb, **args)


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"pid": "x"}'])
def test_without_a_readable_run_file_no_kernel_runs(agent, content):
    if content is not None:
        (agent / "data").mkdir()
        (agent / "data/run.json").write_bytes(content)
    with pytest.raises(AgentNotRunning):
        running(agent)


def test_a_run_file_left_behind_by_a_killed_kernel_means_not_running(agent, tmp_path):
    listening(agent, tmp_path).close()
    with pytest.raises(AgentNotRunning):
        ask(agent, "summary")


def test_a_kernel_that_says_nothing_is_not_waited_for_for_ever(agent, tmp_path):
    with listening(agent, tmp_path), pytest.raises(AgentNotRunning, match="doesn't answer"):
        Control(agent, timeout_s=0.05)


@contextmanager
def answering(agent, tmp_path, answer: bytes):
    """Whoever connects first is sent ``answer``."""
    with listening(agent, tmp_path) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(answer)
                peer.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(20)


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", frame(b"\xc1"), frame(b"\x80")])
def test_garbage_instead_of_a_hello_is_an_error(agent, tmp_path, garbage):
    with answering(agent, tmp_path, garbage), pytest.raises((AgentNotRunning, FrameInvalid)):
        Control(agent)


def test_another_protocol_is_refused(agent, tmp_path):
    hello = frame(msgspec.msgpack.encode(Hello(protocol="axon-control/9")))
    with answering(agent, tmp_path, hello), pytest.raises(FrameInvalid, match="axon-control/9"):
        Control(agent)
